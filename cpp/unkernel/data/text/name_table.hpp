// Maps strings to consecutive numbers, and back. A name takes its own bytes, 8 bytes for its end, and 24 to
// 48 bytes of hash table. Names of at most eight bytes, like most labels, are found by their keys alone. The
// slot of a name differs from process to process, so that nobody can choose names that all fall into one
// slot. The number of a name does not depend on its slot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace unkernel::data {

class NameTable {
 public:
  NameTable();
  // Restores a table from bytes() and ends(). Throws std::invalid_argument if they are inconsistent.
  static NameTable of(std::string_view bytes, std::span<const std::int64_t> ends);

  // Returns the number of the name. Adds the name if it is missing.
  std::int32_t add(std::string_view name);
  // Returns the number of the name, or -1.
  std::int32_t find(std::string_view name) const;

  std::string_view name(std::int32_t number) const;
  std::size_t size() const { return ends_.size(); }

  // Return all names concatenated, and the end of each name.
  const std::string& bytes() const { return bytes_; }
  const std::vector<std::int64_t>& ends() const { return ends_; }
  std::size_t memory() const;
  // Returns the largest number of slots that a lookup visits before it finds a name.
  std::size_t longest_probe() const;

 private:
  struct Slot {
    std::uint64_t key;  // the bytes themselves if at most eight, otherwise a hash
    std::uint32_t size;
    std::int32_t number;  // -1 if the slot is free
  };

  std::size_t find_slot(std::string_view name, std::uint64_t key) const;
  void grow();

  std::string bytes_;
  std::vector<std::int64_t> ends_;
  std::vector<Slot> slots_;
};

}  // namespace unkernel::data
