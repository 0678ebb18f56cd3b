// Reads files with one example per line: SVM-light-TK's `.dat` and KeLP's `.klp`.
//
//   label [qid:n] |BT| (tree) |BT| (tree) |ET| 1:0.5 7:1 |BV| 2:1 |EV|       SVM-light-TK
//   label |BT:name| (tree) |ET| |BV:name| word:1.0 other:2.0 |EV| |BS:name| text |ES|     KeLP
//
// In the format of SVM-light-TK, the k-th tree of a line belongs to the k-th channel, and `|BV|` separates
// vectors. In the format of KeLP, channels and features have names. docs/formats/trees.md specifies what the
// reader accepts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unkernel/data/text/name_table.hpp"
#include "unkernel/data/trees/brackets.hpp"
#include "unkernel/data/trees/forest.hpp"

namespace unkernel::data {

// The contents of a file, apart from the forest. Each tree and each vector has a channel.
struct TreeExamples {
  NameTable label_names;
  std::vector<std::int32_t> labels;   // into label_names, one per example
  std::vector<std::int64_t> queries;  // one per example, or empty
  bool has_queries = false;
  NameTable tree_channels;
  std::vector<std::int64_t> tree_ends;  // of each example
  std::vector<std::int32_t> tree_channel;
  std::vector<NodeId> roots;  // -1 for an empty tree
  NameTable vector_channels;
  std::vector<std::int64_t> vector_ends;  // of each example
  std::vector<std::int32_t> vector_channel;
  std::vector<std::int64_t> entry_ends;  // of each vector
  // As in the file, ascending. For a named feature, its number in `features`.
  std::vector<std::int64_t> indices;
  std::vector<double> values;
  NameTable features;  // empty unless features have names
};

class TreeLines {
 public:
  TreeLines(std::string file, std::shared_ptr<Forest> forest);

  // Reads a block of the text; blocks may end anywhere. Throws FormatError, after which the reader cannot be
  // used.
  void feed(std::string_view block);
  // Ends the text, and reads its last line if that does not end in a newline.
  void finish();

  TreeExamples& examples() { return examples_; }
  const Forest& forest() const { return *forest_; }

 private:
  void read_line(std::string_view text);
  std::size_t read_head(std::string_view text);
  std::size_t read_query(std::string_view text, std::size_t at);
  std::size_t read_section(std::string_view text, std::size_t at);
  std::size_t read_trees(std::string_view text, std::size_t at, std::string_view name);
  std::size_t read_vectors(std::string_view text, std::size_t at);
  std::size_t read_named_vector(std::string_view text, std::size_t at, std::string_view name);
  std::size_t read_entry(std::string_view text, std::size_t at, bool named);
  void end_vector(std::size_t at, bool named);
  void check_not_repeated(std::size_t at, std::span<const std::int32_t> channels,
                          std::span<const std::int64_t> ends) const;
  [[noreturn]] void fail(std::size_t at, const std::string& why) const;

  std::string file_;
  std::shared_ptr<Forest> forest_;
  BracketReader words_joined_;
  BracketReader words_apart_;
  TreeExamples examples_;
  std::string unfinished_line_;
  std::int64_t line_number_ = 0;
  std::size_t vector_begin_ = 0;  // first entry of the current vector
  std::int32_t trees_in_line_ = 0;
  std::int32_t vectors_in_line_ = 0;
  bool has_numbered_ = false;  // some vector has numbered features
  bool has_named_ = false;
};

}  // namespace unkernel::data
