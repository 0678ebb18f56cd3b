// Small numbers, texts and damaged arrays, decoded from the bytes of a fuzz target's input. Bytes beyond the
// end are 0, so every input can be decoded, and inputs with a common prefix begin with the same numbers.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

class FuzzBytes {
 public:
  FuzzBytes(const std::uint8_t* data, std::size_t size) : bytes_(data, size) {}

  bool empty() const { return at_ >= bytes_.size(); }
  std::uint8_t byte() { return empty() ? std::uint8_t{0} : bytes_[at_++]; }
  bool flag() { return byte() % 2 != 0; }
  // Returns a number below `bound`; takes two bytes if bound exceeds 256.
  std::size_t below(std::size_t bound) {
    if (bound <= 1) return 0;
    const std::size_t low = byte();
    return (bound <= 256 ? low : low + 256 * std::size_t{byte()}) % bound;
  }
  double real() {
    constexpr std::array<double, 8> special = {0.0,
                                               1.0,
                                               -1.0,
                                               1e300,
                                               -1e-300,
                                               std::numeric_limits<double>::infinity(),
                                               std::numeric_limits<double>::quiet_NaN(),
                                               0.5};
    const std::uint8_t first = byte();
    return first < special.size() ? special[first] : (first - 128) / 8.0;
  }
  std::string text(std::size_t max_length) {
    std::string decoded;
    for (std::size_t left = below(max_length + 1); left > 0; --left)
      decoded.push_back(static_cast<char>(byte()));
    return decoded;
  }

  // Returns a number that is next to `old`, at an end of its range, small, or arbitrary.
  template <class T>
  T number(T old) {
    const std::uint8_t kind = byte();
    switch (kind % 8) {
      case 0: return neighbour(old, 1);
      case 1: return neighbour(old, -1);
      case 2: return std::numeric_limits<T>::max();
      case 3: return std::numeric_limits<T>::lowest();
      case 4: return static_cast<T>(kind / 8);
      case 5: return neighbour(T{0}, -1 - kind / 8);
      default:
        if constexpr (std::is_floating_point_v<T>) {
          return static_cast<T>(real());
        } else {
          std::uint64_t bits = 0;
          for (std::size_t k = 0; k < sizeof(T); ++k) bits = bits * 256 + byte();
          return static_cast<T>(bits);
        }
    }
  }

  // Changes one element or the length. Leaves no spare capacity, in which sanitizers would not detect reads.
  template <class Array>
  void damage(Array& array) {
    using T = typename Array::value_type;
    std::vector<T> changed(array.begin(), array.end());
    const std::uint8_t kind = byte();
    const std::size_t position = below(changed.size());
    switch (kind % 8) {
      case 0: changed.resize(position); break;
      case 1: changed.insert(changed.end(), 1U + kind / 64, number(T{})); break;
      case 2:
        if (!changed.empty()) std::swap(changed[position], changed[below(changed.size())]);
        break;
      case 3:
        if (!changed.empty()) changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(position));
        break;
      default:
        if (!changed.empty()) changed[position] = number(changed[position]);
    }
    array = Array(changed.begin(), changed.end());
  }
  template <class T>
    requires std::is_arithmetic_v<T>
  void damage(T& value) {
    value = number(value);
  }

  // Damages one of the parts.
  template <class... Parts>
  void damage_one(Parts&... parts) {
    std::size_t left = below(sizeof...(Parts));
    ((left-- == 0 ? damage(parts) : void()), ...);
  }

 private:
  // Integers wrap around.
  template <class T>
  static T neighbour(T number, int step) {
    if constexpr (std::is_floating_point_v<T>) {
      return number + step;
    } else {
      return static_cast<T>(static_cast<std::uint64_t>(number) + static_cast<std::uint64_t>(step));
    }
  }

  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

// Returns seeds for targets that damage parts of valid files: each file without damage, and with damage to
// each of its parts in several ways.
inline std::vector<std::string> seeds_of_damage(char files, char parts, char ways) {
  std::vector<std::string> seeds;
  for (char file = 0; file < files; ++file) {
    seeds.push_back({file, 0});
    for (char part = 0; part < parts; ++part) {
      for (char k = 0; k < ways; ++k)
        seeds.push_back({file, 1, part, k, static_cast<char>(k / 2), 4, k, 1, part});
    }
  }
  return seeds;
}
