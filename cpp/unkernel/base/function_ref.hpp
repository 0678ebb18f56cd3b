// A non-owning reference to a callable, valid for the duration of a call: two pointers, no copy, no
// allocation. A function with such a parameter is compiled once; a template would be compiled for each
// caller.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace unkernel {

template <class Signature>
class FunctionRef;

template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <class Callable>
    requires(!std::is_same_v<std::remove_cvref_t<Callable>, FunctionRef> &&
             std::is_invocable_r_v<Result, const std::remove_reference_t<Callable>&, Arguments...>)
  FunctionRef(const Callable& target)  // NOLINT: implicit, so that callers can pass a callable directly
      : object_(std::addressof(target)), call_([](const void* object, Arguments... arguments) -> Result {
          const Callable& callable = *static_cast<const Callable*>(object);
          if constexpr (std::is_void_v<Result>) {
            callable(std::forward<Arguments>(arguments)...);
          } else {
            return callable(std::forward<Arguments>(arguments)...);
          }
        }) {}

  Result operator()(Arguments... arguments) const {
    return call_(object_, std::forward<Arguments>(arguments)...);
  }

 private:
  const void* object_;
  Result (*call_)(const void*, Arguments...);
};

}  // namespace unkernel
