"""Strict reading: each test is named by what is wrong with the document."""

from __future__ import annotations

import time

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from certificates.canonical import MAX_DEPTH, MAX_INTEGER, MAX_NAME, canonical_bytes, strict_json
from certificates.errors import (
    CertificateError,
    FieldNameError,
    NestingError,
    NotJsonError,
    NumberError,
    TextEncodingError,
    TooLargeError,
)
from certificates.files import MAX_BYTES

DOCUMENT = "one JSON document"
NAMES_ARE = f"field names of at most {MAX_NAME} printable characters"
WHOLE = "a whole number of at most 2^53 − 1; every other number stands in quotes"
SHALLOW = (f"nesting deeper than {MAX_DEPTH}", f"at most {MAX_DEPTH} levels")
TWICE = ("this field twice", "each field once")

DEFECTS: dict[str, tuple[bytes, type[CertificateError], str, str | None, str]] = {
    # name: (data, error, where, what was got (None where it is worded by Python), what was expected)
    "empty": (b"", NotJsonError, "document", "expecting value at line 1, column 1", DOCUMENT),
    "truncated": (b'{"a":', NotJsonError, "document", None, DOCUMENT),
    "two_documents": (b"{}\n {}", NotJsonError, "document", "extra data at line 2, column 2", DOCUMENT),
    "comment": (b"{} // x", NotJsonError, "document", None, DOCUMENT),
    "single_quotes": (b"{'a':1}", NotJsonError, "document", None, DOCUMENT),
    "trailing_comma": (b"[1,]", NotJsonError, "document", None, DOCUMENT),
    "line_break_in_string": (b'"a\nb"', NotJsonError, "document", None, DOCUMENT),
    "duplicate_field": (b'{"a":{"b":1,"b":1}}', FieldNameError, "a.b", *TWICE),
    "duplicate_field_by_escape": (b'{"b":1,"\\u0062":2}', FieldNameError, "b", *TWICE),
    "field_name_with_line_break": (b'{"a":{"x\\ny":1}}', FieldNameError, "a", "x\ny", NAMES_ARE),
    "field_name_too_long": (b'{"' + b"x" * 65 + b'":1}', FieldNameError, "document", "x" * 65, NAMES_ARE),
    "float": (b'{"a":[0,0.5]}', NumberError, "a[1]", "0.5", WHOLE),
    "float_in_a_list": (b"[0,0.5]", NumberError, "[1]", "0.5", WHOLE),
    "float_that_is_whole": (b'{"a":1.00}', NumberError, "a", "1.00", WHOLE),
    "exponent": (b'{"a":1e5}', NumberError, "a", "1e5", WHOLE),
    "huge_exponent": (b'{"a":{"b":1e999999999}}', NumberError, "a.b", "1e999999999", WHOLE),
    "not_a_number": (b'{"a":NaN}', NumberError, "a", "NaN", WHOLE),
    "infinity": (b'{"a":-Infinity}', NumberError, "a", "-Infinity", WHOLE),
    "overflow_and_underflow": (
        b'{"epsilon":1e400,"delta":NaN,"sigma":1e-400}', NumberError, "epsilon", "1e400", WHOLE
    ),
    "integer_too_large": (b'{"a":9007199254740992}', NumberError, "a", "9007199254740992", WHOLE),
    "integer_too_small": (b'{"a":-9007199254740992}', NumberError, "a", "-9007199254740992", WHOLE),
    "half_a_megabyte_of_digits": (b'{"a":' + b"9" * (1 << 19) + b"}", NumberError, "a", "9" * (1 << 19), WHOLE),
    "lone_surrogate": (
        b'{"a":["\\ud800"]}', TextEncodingError, "a[0]", "half of a surrogate pair", "text that UTF-8 can hold"
    ),
    "byte_order_mark": (
        b'\xef\xbb\xbf{"a":1}', TextEncodingError, "document", "a byte order mark", "UTF-8 text without one"
    ),
    "utf_16": ('{"a":1}'.encode("utf-16-le"), NotJsonError, "document", None, DOCUMENT),
    "utf_16_marked": (b'\xff\xfe{\0}\0', TextEncodingError, "document", "byte 0xff at 0", "UTF-8 text"),
    "not_utf_8": (b'{"a":"\xff"}', TextEncodingError, "document", "byte 0xff at 6", "UTF-8 text"),
    "overlong_utf_8": (b'{"a":"\xc0\xaf"}', TextEncodingError, "document", "byte 0xc0 at 6", "UTF-8 text"),
    "nesting": (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), NestingError, "document", *SHALLOW),
    "nesting_of_100000": (b'{"a":' * 100_000, NestingError, "document", *SHALLOW),
    "nesting_after_a_backslash": (b'["\\\\",' + b"[" * 50, NestingError, "document", *SHALLOW),
    "nesting_after_a_quote": (b'["\\"",' + b"[" * 50, NestingError, "document", *SHALLOW),
    "nesting_after_levels_are_closed": (b"[" * 20 + b"[]," * 20 + b"[" * 20, NestingError, "document", *SHALLOW),
    "too_large": (
        b" " * MAX_BYTES + b"1", TooLargeError, "document", f"{MAX_BYTES + 1} bytes", f"at most {MAX_BYTES} bytes"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DEFECTS)
def test_refused(name: str) -> None:
    data, error, where, got, expected = DEFECTS[name]
    start = time.process_time()
    with pytest.raises(error) as caught:
        strict_json(data)
    assert time.process_time() - start < 1
    assert (caught.value.where, caught.value.expected) == (where, expected)
    assert got in (None, caught.value.got)
    assert len(str(caught.value)) < 250
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", DEFECTS)
def test_refused_in_a_file(name: str) -> None:
    data, error, where, _, expected = DEFECTS[name]
    with pytest.raises(error) as caught:
        strict_json(data, "c.json")
    place = "c.json" if where == "document" else f"c.json: {where}"
    assert (caught.value.where, caught.value.expected) == (place, expected)


@pytest.mark.parametrize(
    "data",
    [
        b'"' * MAX_BYTES,
        b'\\"' * (MAX_BYTES // 2),
        b"[]" * (MAX_BYTES // 2),
        b'"' + b"\\" * (MAX_BYTES - 1),
        b"9" * MAX_BYTES,
    ],
    ids=["quotes", "escaped_quotes", "empty_lists", "backslashes", "digits"],
)
def test_a_megabyte_of_anything_takes_linear_time(data: bytes) -> None:
    start = time.process_time()
    with pytest.raises(CertificateError):
        strict_json(data)
    assert time.process_time() - start < 1.5


def test_brackets_inside_strings_do_not_nest() -> None:
    assert strict_json(b'["' + b"[{" * 100 + b'\\"[[[["]') == ["[{" * 100 + '"[[[[']


def test_deepest_allowed_nesting() -> None:
    document = strict_json(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    assert canonical_bytes(document) == b"[" * MAX_DEPTH + b"]" * MAX_DEPTH


def test_levels_that_are_closed_do_not_count() -> None:
    assert strict_json(b"[" + b"[]," * 100 + b"[]]") == [[]] * 101


def test_largest_document_is_read() -> None:
    assert strict_json(b" " * (MAX_BYTES - 1) + b"1") == 1


def test_longest_field_name_is_read() -> None:
    assert strict_json(b'{"' + b"x" * MAX_NAME + b'":1}') == {"x" * MAX_NAME: 1}


def test_largest_whole_numbers_are_kept() -> None:
    assert strict_json(f"[{MAX_INTEGER},-{MAX_INTEGER},0]".encode()) == [MAX_INTEGER, -MAX_INTEGER, 0]


def test_text_is_kept_as_it_was_written() -> None:
    """1e-5 and 0.00001 are one number and two texts: in quotes, neither is written as the other."""
    assert canonical_bytes(strict_json(b'{"delta":"1e-5"}')) == b'{"delta":"1e-5"}'
    assert canonical_bytes(strict_json(b'{"delta":"0.00001"}')) == b'{"delta":"0.00001"}'


def test_a_fraction_is_not_cut_off() -> None:
    """4.99 and 4 must not have the same signed bytes."""
    assert canonical_bytes({"sigma": "4.99"}) != canonical_bytes({"sigma": "4"})
    with pytest.raises(NumberError, match="sigma"):
        canonical_bytes({"sigma": 4.99})


@pytest.mark.parametrize(
    ("value", "error", "got"),
    [
        (0.5, NumberError, 0.5),
        (2**53, NumberError, "a number of 54 bits"),
        (-(10**5000), NumberError, "a number of 16610 bits"),
        (b"x", NumberError, b"x"),
        ("\udc00", TextEncodingError, "half of a surrogate pair"),
    ],
    ids=["float", "54_bits", "16610_bits", "bytes", "lone_surrogate"],
)
def test_canonical_bytes_refuse_what_the_reader_refuses(
    value: object, error: type[CertificateError], got: object
) -> None:
    for document, where in (({"a": value}, "a"), ([0, value], "[1]"), ({"a": {"b": [(value,)]}}, "a.b[0][0]")):
        with pytest.raises(error) as caught:
            canonical_bytes(document)
        assert (caught.value.where, caught.value.got) == (where, got)
        assert caught.value.expected == (WHOLE if error is NumberError else "text that UTF-8 can hold")
    with pytest.raises(error) as caught:
        canonical_bytes(value)
    assert caught.value.where == "document"


def test_control_characters_parse_back() -> None:
    document = {"note": "x\ny\x00\x1f\u2028\"\\/"}
    assert strict_json(canonical_bytes(document)) == document


def test_field_order_is_that_of_utf_16() -> None:
    """RFC 8785, section 3.2.3: U+1F600 (a surrogate pair) sorts before U+FB33."""
    text = '{"\\ufb33":1,"\\ud83d\\ude00":2,"\\u20ac":3,"1":4}'
    expected = '{"1":4,"\u20ac":3,"\U0001f600":2,"\ufb33":1}'
    assert canonical_bytes(strict_json(text.encode())).decode() == expected


NAMES = st.text(st.characters(exclude_categories=["C", "Z"]), max_size=8)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-MAX_INTEGER, MAX_INTEGER) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None)
@given(DOCUMENTS)
def test_canonical_bytes_parse_back_and_are_a_fixed_point(document: object) -> None:
    data = canonical_bytes(document)
    assert strict_json(data) == document
    assert canonical_bytes(strict_json(data)) == data
    assert rfc8785.dumps(strict_json(data)) == data


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        document = strict_json(data)
    except CertificateError as error:
        assert str(error).isprintable()
    else:
        assert strict_json(canonical_bytes(document)) == document
