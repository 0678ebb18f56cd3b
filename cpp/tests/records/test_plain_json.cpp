// The reader of plain records declines all other records, which the general reader of JSON reads. Text that
// is not ASCII is declined, whether `char` is signed or not.
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "unkernel/records/plain_json.hpp"

namespace {

using namespace unkernel::records;

bool can_read(std::string_view record, std::vector<Cell>& cells) {
  PlainJson reader({{"x", {0}}, {"y", {1}}}, true);
  const std::string text(record);  // which has a byte after its end
  cells.assign(2, {});
  reader.begin(text, false);
  return reader.read(cells) && reader.at_end();
}

bool can_read(std::string_view record) {
  std::vector<Cell> cells;
  return can_read(record, cells);
}

void check_that_plain_values_are_read() {
  std::vector<Cell> cells;
  CHECK(can_read(R"({"x": -2.5, "y": "a b"})", cells));
  CHECK(cells[0].number() == -2.5);
  CHECK(can_read(R"({"y": true, "x": null, "z": "~"})", cells));
  CHECK(cells[1].number() == 1.0);
  CHECK(cells[0].kind() == CellKind::none);
  CHECK(can_read("{\"y\": \"\x7f\"}"));
}

void check_that_other_text_is_declined() {
  CHECK(!can_read("{\"y\": \"tr\xc3\xa8s\"}"));
  CHECK(!can_read("{\"y\": \"\xe6\x9d\xb1\xe4\xba\xac\"}"));
  CHECK(!can_read("{\"y\": \"\xf0\x9f\x98\x80\"}"));
  CHECK(!can_read("{\"\xc3\xa9\": 1}"));
  CHECK(!can_read("{\"z\": \"\xc3\xa9\"}"));  // also in an unused column
}

void check_that_invalid_bytes_are_declined() {
  for (int code = 0x80; code <= 0xff; ++code) {
    const auto byte = static_cast<char>(static_cast<unsigned char>(code));
    CHECK(!can_read(std::string("{\"y\": \"") + byte + "\"}"));
    CHECK(!can_read(std::string("{\"y\": ") + byte + "}"));
    CHECK(!can_read(std::string("{\"y") + byte + "\": 1}"));
    CHECK(!can_read(std::string("{\"y\": 1") + byte + "}"));
    CHECK(!can_read(std::string(1, byte) + "{}"));
  }
  for (int code = 0; code < 0x20; ++code)
    CHECK(!can_read(std::string("{\"y\": \"") + static_cast<char>(code) + "\"}"));
}

void check_that_escapes_are_declined() {
  CHECK(!can_read(R"({"y": "tr\u00e8s"})"));
  CHECK(!can_read(R"({"y": "\ud800"})"));
  CHECK(!can_read(R"({"\u0079": 1})"));
  CHECK(!can_read(R"({"y": "a\"b"})"));
}

}  // namespace

int main() {
  check_that_plain_values_are_read();
  check_that_other_text_is_declined();
  check_that_invalid_bytes_are_declined();
  check_that_escapes_are_declined();
  return 0;
}
