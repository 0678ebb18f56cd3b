// Strings and their numbers, both ways. A name costs its bytes, 8 bytes for where it ends, and 24 to 48 bytes
// of hash table. Names of up to eight bytes, which most labels are, are found without looking at them.
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
  // Of what bytes() and ends() gave. Throws std::invalid_argument unless that is what they are.
  static NameTable of(std::string_view bytes, std::span<const std::int64_t> ends);

  // The number of the name, which is added if it is not there.
  std::int32_t add(std::string_view name);
  // Its number, or -1.
  std::int32_t find(std::string_view name) const;

  std::string_view name(std::int32_t number) const;
  std::size_t size() const { return ends_.size(); }

  // All names one after another, and where each ends.
  const std::string& bytes() const { return bytes_; }
  const std::vector<std::int64_t>& ends() const { return ends_; }
  std::size_t memory() const;

 private:
  struct Slot {
    std::uint64_t key;  // the bytes themselves if they are few, else a hash
    std::uint32_t size;
    std::int32_t number;  // -1: free
  };

  std::size_t place(std::string_view name, std::uint64_t key) const;
  void grow();

  std::string bytes_;
  std::vector<std::int64_t> ends_;
  std::vector<Slot> slots_;
};

}  // namespace unkernel::data
