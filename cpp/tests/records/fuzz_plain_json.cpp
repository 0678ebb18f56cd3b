// Reads any bytes as a list of records in JSON, or as lines of records. Texts of cells are plain and lie
// inside the bytes, numbers are finite, and nothing is read beyond the end.
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "fuzz.hpp"
#include "unkernel/records/plain_json.hpp"

namespace {

using namespace unkernel::records;

constexpr std::size_t cell_count = 3;

void check_cells(const std::vector<Cell>& cells, std::string_view text) {
  for (const Cell& cell : cells) {
    if (cell.kind() == CellKind::number) CHECK(std::isfinite(cell.number()));
    if (cell.kind() != CellKind::text) continue;
    CHECK(cell.text().data() >= text.data());
    CHECK(cell.text().data() + cell.text().size() <= text.data() + text.size());
    for (const char c : cell.text()) CHECK(c >= 0x20 && c != '"' && c != '\\');
  }
}

void check_reading(std::string_view text, bool lines) {
  PlainJson reader({{"x", {0}}, {"y", {1, 2}}, {"", {}}}, lines);
  reader.begin(text, lines);
  if (!lines && !reader.take('[')) return;
  std::vector<Cell> cells(cell_count);
  while (reader.read(cells)) {
    check_cells(cells, text);
    cells.assign(cell_count, {});
    if (lines ? !reader.take_line_ends() : !reader.take(',')) return;
  }
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  return {R"([{"x": 1, "y": "a b"}, {"y": -2.5e3, "x": null}])", R"([{"x": true, "z": false, "": 0.125}])",
          "{\"x\": 7}\n\n{\"y\": \"\"}\r\n", R"([{"x": 123456789012345678, "y": "\u00e9"}, [1]])",
          "[{}, {}]"};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);  // which has a byte after its end
  check_reading(text, false);
  check_reading(text, true);
  return 0;
}
