// The input changes the index or the blocks of a file of rows. The file is refused with a FormatError, or all
// columns and offsets of its blocks are in range. Checksums are usually recomputed, so that they do not
// reveal the changes.
#include <cstdio>
#include <string>
#include <vector>

#include "check.hpp"
#include "data/rows/packed_example.hpp"
#include "fuzz.hpp"
#include "fuzz_bytes.hpp"
#include "temporary_file.hpp"
#include "unkernel/base/checksum.hpp"
#include "unkernel/base/error.hpp"
#include "unkernel/data/rows/block_file.hpp"
#include "unkernel/data/rows/block_packer.hpp"

namespace {

using namespace unkernel;
using namespace unkernel::data;

struct Packed {
  std::vector<unsigned char> bytes;  // from the beginning of the file
  std::vector<BlockEntry> index;
  std::int64_t end = 0;
  std::size_t features = 0;
};

const std::vector<Packed>& valid_files() {
  static const std::vector<Packed> all = [] {
    std::vector<Packed> files;
    for (const Layout& layout : packed_example::layouts) {
      const bool narrow = layout.columns == ColumnKind::narrow;
      const auto rows = packed_example::rows_for(layout, {6, narrow ? 20 : 70'000, 5}, 1);
      BlockPacker packer;
      packer.add(rows.view());
      packer.finish();
      Packed file;
      file.bytes.resize(static_cast<std::size_t>(block_alignment));
      const auto bytes = packer.take();
      file.bytes.insert(file.bytes.end(), bytes.begin(), bytes.end());
      file.index = packer.index();
      file.end = packer.end();
      file.features = static_cast<std::size_t>(rows.features);
      files.push_back(std::move(file));
    }
    return files;
  }();
  return all;
}

const TemporaryFile& scratch_file() {
  static const TemporaryFile file;
  return file;
}

void damage(FuzzBytes& input, Packed& file) {
  BlockEntry& entry = file.index[input.below(file.index.size())];
  switch (input.below(4)) {
    case 0: return input.damage_one(entry.position, entry.rows, entry.entries, entry.layout);
    case 1: return input.damage_one(file.end, file.features);
    case 2: return input.damage(file.bytes);
    default: {
      auto& byte = file.bytes[static_cast<std::size_t>(block_alignment) +
                              input.below(file.bytes.size() - static_cast<std::size_t>(block_alignment))];
      byte = input.byte();
    }
  }
}

// Recomputes the checksums of all blocks that are inside the file.
void recompute_checksums(Packed& file) {
  for (BlockEntry& entry : file.index) {
    const auto size = static_cast<std::int64_t>(file.bytes.size());
    if (entry.position < 0 || entry.position > size || entry.rows < 0 || entry.rows > 1000 ||
        entry.entries < 0 || entry.entries > 1000 || entry.layout < 0 || entry.layout >= 6)
      continue;
    for (const Layout& layout : packed_example::layouts) {
      if (layout_code(layout) != entry.layout) continue;
      const auto bytes = static_cast<std::int64_t>(block_bytes(entry.rows, entry.entries, layout));
      if (bytes > size - entry.position) continue;
      entry.checksum =
          checksum(std::span<const unsigned char>(file.bytes)
                       .subspan(static_cast<std::size_t>(entry.position), static_cast<std::size_t>(bytes)));
    }
  }
}

void read_all(const BlockFile& file) {
  std::int64_t rows = 0;
  for (std::int64_t k = 0; k < file.blocks(); ++k) {
    const BlockLease lease = file.block(k);
    rows += lease->rows();
    const auto entries = static_cast<std::size_t>(lease->offsets.back());
    with_types(*lease, [&](const auto* columns, const auto*) {
      for (std::size_t i = 0; i < entries; ++i) CHECK(columns[i] < file.features());
    });
  }
  CHECK(rows == file.rows());
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (char file = 0; file < 6; ++file) {
    for (char kind = 0; kind < 4; ++kind) seeds.push_back({file, 1, 1, kind, 2, 1, 4, 7});
    seeds.push_back({file, 1, 0});
  }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzBytes input(data, size);
  Packed file = valid_files()[input.below(valid_files().size())];
  const bool recompute = input.byte() < 240;
  for (std::size_t left = input.below(4); left > 0 && !file.bytes.empty(); --left) {
    if (file.bytes.size() <= static_cast<std::size_t>(block_alignment)) break;
    damage(input, file);
  }
  if (recompute) recompute_checksums(file);
  scratch_file().write(file.bytes);
  try {
    read_all(BlockFile({"fuzz", scratch_file().descriptor(), file.end}, file.features, file.index));
  } catch (const FormatError& error) { CHECK(!error.reason.empty()); }
  return 0;
}
