"""Files of rows with random damage, also with matching checksums, as an attacker would write them."""

from __future__ import annotations

import json

from unkernel.data.checksums import checksum_of

NUMBERS = [0, 1, 2, -1, 63, 64, 2048, 2501, 65535, 2**31, 2**32 - 1, 2**32, 2**60, 2**63 - 1, 2**64]
OTHERS = [None, True, False, "", "x", [], {}, 1.5, [1], {"labels": 1}]


def damage_bytes(content, rng):
    """Change a byte, overwrite, remove or repeat a range, or truncate the file."""
    begin, length = int(rng.integers(len(content))), int(rng.integers(1, 200))
    if rng.random() < 0.3:  # where the footer and the index are
        begin = len(content) - int(rng.integers(1, 1500))
    end = min(len(content), begin + length)
    middle = [
        bytes([content[begin] ^ (1 << int(rng.integers(8)))]) + content[begin + 1 : end],
        rng.bytes(end - begin),
        b"\0" * (end - begin),
        b"",
        content[begin:end] * 2,
    ][int(rng.integers(5))]
    if rng.random() < 0.1:
        return content[: max(begin, 1)]
    return content[:begin] + middle + content[end:]


def split_footer(content):
    length = int.from_bytes(content[-32:-24], "little")
    return content[: -32 - length], json.loads(content[-32 - length : -32])


def sign_footer(body, footer):
    text = json.dumps(footer).encode()
    sums = len(text).to_bytes(8, "little") + checksum_of(text).to_bytes(8, "little")
    return body + text + sums + b"unkernel rows 1\n"


def damage_footer(content, rng):
    """Replace or remove a value in the footer, and recompute its checksum."""
    body, footer = split_footer(content)
    table = footer["sources"][0] if rng.random() < 0.1 else footer
    name = str(rng.choice(list(table)))
    choices = NUMBERS if rng.random() < 0.7 else OTHERS
    table[name] = choices[int(rng.integers(len(choices)))]
    if rng.random() < 0.1:
        del table[name]
    if rng.random() < 0.2:  # so that arrays of other lengths match again
        footer["rows"] = max(0, int(rng.integers(-8, 8)) + 2500)
        body = body[:-8] if rng.random() < 0.5 else body + b"\0" * 16
    return sign_footer(body, footer)
