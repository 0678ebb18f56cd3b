// Makes non-projective trees projective, for a parser that cannot cross arcs, and undoes this after parsing
// (Nivre & Nilsson 2005, the head scheme).
//
// Crossing arcs are lifted (lifting.hpp). The label of a lifted word encodes its origin: "nsubj↑acl" is an
// nsubj whose true head is an acl. After parsing, the word moves to the nearest acl below its head, searched
// from top to bottom and from left to right. If there is no acl, the word keeps its head.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/data/text/name_table.hpp"
#include "unkernel/parsing/arc_eager/transitions.hpp"

namespace unkernel::parsing {

// The head and the label of each word; index 0 is unused.
struct LabelledTree {
  std::vector<Word> heads;
  std::vector<std::int32_t> labels;
};

// Labels and their numbers. The label of a lifted word also refers to its two components.
class LabelSet {
 public:
  std::int32_t add(std::string_view name);
  std::int32_t add_lifted(std::int32_t label, std::int32_t head_label);

  std::size_t size() const { return parts_.size(); }
  std::string_view name(std::int32_t label) const { return names_.name(label); }
  // Returns the label without the component of a lifted word.
  std::int32_t plain(std::int32_t label) const { return parts_[static_cast<std::size_t>(label)].plain; }
  // Returns the label of a lifted word's true head; no_label if the word is not lifted.
  std::int32_t head_label(std::int32_t label) const { return parts_[static_cast<std::size_t>(label)].head; }

 private:
  struct Parts {
    std::int32_t plain;
    std::int32_t head;
  };
  data::NameTable names_;
  std::vector<Parts> parts_;
};

// Makes a tree projective, and returns how many words were lifted. Every word must descend from the root.
std::size_t projectivise(LabelledTree& tree, LabelSet& labels, const Monitor& monitor);

// Undoes lifting as far as the labels allow, and gives all words their plain labels.
void deprojectivise(LabelledTree& tree, const LabelSet& labels, const Monitor& monitor);

}  // namespace unkernel::parsing
