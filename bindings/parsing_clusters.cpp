// Clusters of words.
#include <cstdint>
#include <vector>

#include "bindings.hpp"
#include "unkernel/parsing/clusters/exchange.hpp"

namespace unkernel::bindings {

void bind_clusters(nb::module_& module) {
  using parsing::ExchangeClusters;
  nb::class_<ExchangeClusters>(module, "ExchangeClusters")
      .def(
          "__init__",
          [](ExchangeClusters* self, const Array<std::int32_t>& words, std::int32_t vocabulary,
             std::int32_t others, std::size_t clusters) {
            const Unlocked unlocked;
            new (self) ExchangeClusters(view(words), vocabulary, others, clusters);
          },
          nb::arg("words"), nb::kw_only(), nb::arg("vocabulary"), nb::arg("others"), nb::arg("clusters"))
      .def("run_epoch",
           [](ExchangeClusters& self) {
             return run_interruptibly([&](const Monitor& monitor) { return self.run_epoch(monitor); });
           })
      .def("clusters", [](const ExchangeClusters& self) { return copy_to_numpy(self.clusters()); });
}

}  // namespace unkernel::bindings
