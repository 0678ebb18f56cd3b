// Plain records are read, and all other records are left to another reader: above all text that is not ASCII,
// whether `char` is signed or not.
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "unkernel/records/plain_json.hpp"

namespace {

using namespace unkernel::records;

bool reads(std::string_view record, std::vector<Cell>& cells) {
  PlainJson reader({{"x", {0}}, {"y", {1}}}, true);
  const std::string text(record);  // which has a byte after its end
  cells.assign(2, {});
  reader.begin(text, false);
  return reader.read(cells) && reader.at_end();
}

bool reads(std::string_view record) {
  std::vector<Cell> cells;
  return reads(record, cells);
}

void check_that_plain_values_are_read() {
  std::vector<Cell> cells;
  CHECK(reads(R"({"x": -2.5, "y": "a b"})", cells));
  CHECK(cells[0].number() == -2.5);
  CHECK(reads(R"({"y": true, "x": null, "z": "~"})", cells));
  CHECK(cells[1].number() == 1.0);
  CHECK(cells[0].kind() == CellKind::none);
  CHECK(reads("{\"y\": \"\x7f\"}"));
}

void check_that_other_text_is_left() {
  CHECK(!reads("{\"y\": \"tr\xc3\xa8s\"}"));
  CHECK(!reads("{\"y\": \"\xe6\x9d\xb1\xe4\xba\xac\"}"));
  CHECK(!reads("{\"y\": \"\xf0\x9f\x98\x80\"}"));
  CHECK(!reads("{\"\xc3\xa9\": 1}"));
  CHECK(!reads("{\"z\": \"\xc3\xa9\"}"));  // not even where it is unused
}

void check_that_invalid_bytes_are_left() {
  for (int code = 0x80; code <= 0xff; ++code) {
    const auto byte = static_cast<char>(static_cast<unsigned char>(code));
    CHECK(!reads(std::string("{\"y\": \"") + byte + "\"}"));
    CHECK(!reads(std::string("{\"y\": ") + byte + "}"));
    CHECK(!reads(std::string("{\"y") + byte + "\": 1}"));
    CHECK(!reads(std::string("{\"y\": 1") + byte + "}"));
    CHECK(!reads(std::string(1, byte) + "{}"));
  }
  for (int code = 0; code < 0x20; ++code)
    CHECK(!reads(std::string("{\"y\": \"") + static_cast<char>(code) + "\"}"));
}

void check_that_escapes_are_left() {
  CHECK(!reads(R"({"y": "tr\u00e8s"})"));
  CHECK(!reads(R"({"y": "\ud800"})"));
  CHECK(!reads(R"({"\u0079": 1})"));
  CHECK(!reads(R"({"y": "a\"b"})"));
}

}  // namespace

int main() {
  check_that_plain_values_are_read();
  check_that_other_text_is_left();
  check_that_invalid_bytes_are_left();
  check_that_escapes_are_left();
  return 0;
}
