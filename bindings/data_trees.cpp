// Forests, and files of trees.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>

#include "tables.hpp"
#include "trees.hpp"
#include "unkernel/base/error.hpp"
#include "unkernel/data/trees/forest_copy.hpp"
#include "unkernel/data/trees/tree_lines.hpp"

namespace unkernel::bindings {

using data::Forest;
using data::NodeId;

void throw_format_error(const std::string& name, std::string_view text, const data::BracketError& error) {
  const std::string_view preceding = text.substr(0, error.offset);
  const auto line = std::ranges::count(preceding, '\n') + 1;
  const auto newline = preceding.rfind('\n');
  const std::size_t column = newline == std::string_view::npos ? error.offset + 1 : error.offset - newline;
  throw FormatError(name, line, static_cast<std::int64_t>(column), error.what());
}

void check_roots(const Forest& forest, std::span<const NodeId> roots) {
  for (const NodeId root : roots) {
    if (root < -1 || root >= static_cast<NodeId>(forest.size()))
      throw std::out_of_range("a root is no node of the forest");
  }
}

namespace {

NodeId read_one(data::BracketReader& reader, const std::string& name, std::string_view text) {
  try {
    std::size_t position = data::skip_blanks(text, 0);
    const NodeId root = reader.read(text, position);
    position = data::skip_blanks(text, position);
    if (position < text.size()) throw data::BracketError(position, "unexpected text after the tree");
    return root;
  } catch (const data::BracketError& error) { throw_format_error(name, text, error); }
}

nb::ndarray<nb::numpy, NodeId> add_brackets(Forest& forest, const nb::typed<nb::list, nb::str>& trees,
                                            std::size_t first) {
  const AddingLock adding(forest);
  data::BracketReader reader(forest, data::WordStyle::apart);
  std::vector<NodeId> roots;
  for (std::size_t i = 0; i < trees.size(); ++i) {
    const Utf8 text(trees[i]);
    roots.push_back(read_one(reader, "trees[" + std::to_string(first + i) + "]", text.view()));
  }
  return to_numpy(std::move(roots));
}

// Reads a file of trees, one after another.
nb::ndarray<nb::numpy, NodeId> read_brackets(Forest& forest, const std::string& name,
                                             const nb::bytes& bytes) {
  const std::string_view text = view(bytes);
  const AddingLock adding(forest);
  std::vector<NodeId> roots;
  {
    const Unlocked unlocked;
    data::BracketReader reader(forest, data::WordStyle::apart);
    try {
      for (std::size_t position = data::skip_blanks(text, 0); position < text.size();
           position = data::skip_blanks(text, position)) {
        roots.push_back(reader.read(text, position));
      }
    } catch (const data::BracketError& error) { throw_format_error(name, text, error); }
  }
  return to_numpy(std::move(roots));
}

NodeId add_preorder(Forest& forest, const nb::typed<nb::list, nb::str>& labels,
                    const std::vector<std::int64_t>& arities) {
  const AddingLock adding(forest);
  std::vector<Utf8> texts;
  std::vector<std::string_view> views;
  for (const nb::handle label : labels) texts.emplace_back(label);
  for (const Utf8& text : texts) views.push_back(text.view());
  return data::add_preorder(forest, views, arities);
}

// Copies trees of another forest, given their roots there, to this forest. Returns their roots in this
// forest.
nb::ndarray<nb::numpy, NodeId> absorb(Forest& forest, const Forest& other, const Array<NodeId>& roots) {
  const AddingLock adding(forest);
  check_roots(other, view(roots));
  return to_numpy(data::absorb(forest, other, view(roots)));
}

Table list_forest_arrays(const Forest& forest) {
  Table table;
  const std::string& bytes = forest.labels().bytes();
  table["label_bytes"] = to_numpy(std::vector<std::uint8_t>(bytes.begin(), bytes.end()));
  table["label_ends"] = copy_to_numpy(forest.labels().ends());
  std::vector<std::int32_t> node_labels;
  std::vector<std::int64_t> child_begins{0};
  for (std::size_t i = 0; i < forest.size(); ++i) {
    const auto node = static_cast<NodeId>(i);
    node_labels.push_back(forest.label(node));
    child_begins.push_back(child_begins.back() + static_cast<std::int64_t>(forest.children(node).size()));
  }
  table["node_labels"] = to_numpy(std::move(node_labels));
  table["child_begins"] = to_numpy(std::move(child_begins));
  table["children"] = copy_to_numpy(forest.all_children());
  return table;
}

std::shared_ptr<Forest> restore_forest(const Array<std::uint8_t>& label_bytes,
                                       const Array<std::int64_t>& label_ends,
                                       const Array<std::int32_t>& node_labels,
                                       const Array<std::int64_t>& child_begins,
                                       const Array<NodeId>& children) {
  const std::string_view bytes(reinterpret_cast<const char*>(label_bytes.data()), label_bytes.size());
  return std::make_shared<Forest>(
      data::restore_forest({bytes, view(label_ends), view(node_labels), view(child_begins), view(children)}));
}

void bind_forest_class(nb::module_& module) {
  nb::class_<Forest>(module, "Forest")
      .def(nb::init<>())
      .def("add_brackets", &add_brackets, nb::arg("trees"), nb::arg("first"))
      .def("read_brackets", &read_brackets, nb::arg("name"), nb::arg("text"))
      .def("add_preorder", &add_preorder, nb::arg("labels"), nb::arg("arities"))
      .def("absorb", &absorb, nb::arg("other"), nb::arg("roots"))
      .def(
          "brackets",
          [](const Forest& forest, NodeId root, bool bracket_leaves) {
            check_roots(forest, std::span(&root, 1));
            const std::string text =
                root < 0 ? std::string() : data::to_brackets(forest, root, bracket_leaves);
            return decode_text(text);
          },
          nb::arg("root"), nb::arg("bracket_leaves"),
          nb::sig("def brackets(self, root: int, bracket_leaves: bool) -> str"))
      .def(
          "tree_sizes",
          [](const Forest& forest, const Array<NodeId>& roots) {
            check_roots(forest, view(roots));
            return to_numpy(forest.tree_sizes(view(roots)));
          },
          nb::arg("roots"))
      .def_prop_ro("longest_text", [](const Forest& forest) { return data::longest_text(forest); })
      .def("arrays", &list_forest_arrays)
      .def_static("from_arrays", &restore_forest, nb::arg("label_bytes"), nb::arg("label_ends"),
                  nb::arg("node_labels"), nb::arg("child_begins"), nb::arg("children"))
      .def_prop_ro("nodes", [](const Forest& forest) { return forest.size(); })
      .def_prop_ro("labels", [](const Forest& forest) { return forest.label_count(); })
      .def_prop_ro("productions", [](const Forest& forest) { return forest.production_count(); })
      .def_prop_ro("nbytes", [](const Forest& forest) { return forest.memory(); });
}

nb::list decode_names(const data::NameTable& names) {
  nb::list list;
  for (std::size_t i = 0; i < names.size(); ++i)
    list.append(decode_text(names.name(static_cast<std::int32_t>(i))));
  return list;
}

Table take_examples(data::TreeLines& lines) {
  data::TreeExamples& examples = lines.examples();
  Table table;
  table["label_names"] = decode_names(examples.label_names);
  table["labels"] = to_numpy(std::move(examples.labels));
  table["queries"] = to_numpy(std::move(examples.queries));
  table["tree_channels"] = decode_names(examples.tree_channels);
  table["tree_ends"] = to_numpy(std::move(examples.tree_ends));
  table["tree_channel"] = to_numpy(std::move(examples.tree_channel));
  table["roots"] = to_numpy(std::move(examples.roots));
  table["vector_channels"] = decode_names(examples.vector_channels);
  table["vector_ends"] = to_numpy(std::move(examples.vector_ends));
  table["vector_channel"] = to_numpy(std::move(examples.vector_channel));
  table["entry_ends"] = to_numpy(std::move(examples.entry_ends));
  table["indices"] = to_numpy(std::move(examples.indices));
  table["values"] = to_numpy(std::move(examples.values));
  table["features"] = decode_names(examples.features);
  return table;
}

void bind_lines(nb::module_& module) {
  using data::TreeLines;
  nb::class_<TreeLines>(module, "TreeLines")
      .def(nb::init<std::string, std::shared_ptr<Forest>>(), nb::arg("file"), nb::arg("forest"))
      .def(
          "feed",
          [](TreeLines& self, const nb::bytes& block) {
            const std::string_view text = view(block);
            const AddingLock adding(self.forest());
            const Unlocked unlocked;
            self.feed(text);
          },
          nb::arg("block"))
      .def("finish",
           [](TreeLines& self) {
             const AddingLock adding(self.forest());
             const Unlocked unlocked;
             self.finish();
           })
      .def("take", &take_examples);
}

}  // namespace

void bind_forest(nb::module_& module) {
  bind_forest_class(module);
  bind_lines(module);
}

}  // namespace unkernel::bindings
