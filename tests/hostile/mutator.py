"""Spoils certificates: edits of the parsed document, and of its bytes.

Everything is drawn from one ``random.Random``, so that a case is reproduced by its seed, and hypothesis can shrink it.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Sequence
from typing import Any, Final

import rfc8785

from certificates.files import MAX_BYTES
from certificates.signing import sign
from tests.hostile.seeds import STRANGER, TRUSTED
from tests.hostile.tree import Object, Place, Raw, parsed, places, text_of, tree_of

VALUES: Final = (
    None, True, False, 0, 1, -1, 17, 1000, 2**53 - 1, 2**53, 10**30, "", " ", "0", "-0", "1", "-1", "0.5", "1/3", "1/0",
    "0/1", "inf", "nan", "1e400", "1e-400", "1e-300", "1e999999999", "0x1p-1400", "0x1.8p+1", "0x", "1_0", "１", "١",
    "0b1", "1e", ".", "+", "1/-3", "9" * 1000, "9" * 1001, f"1/{'9' * 990}", "0." + "0" * 390 + "1", "[]", "a" * 3000,
    "\x00", "\x1b[2J", "\u202e", "\ud800", "\ufeff", "verified", "refuted", "inconclusive", "direct", "theorem-3.2",
    "theorem-4.2", "zcdp", "gaussian", "multi-gaussian", "quasi-gaussian", "declared", "laplace", "truncated-laplace",
    "flipped-huber", "tulap", "staircase", "truncated-staircase", "sigmacert certificate", "sigmacert composition",
    "2026-01-31T12:00:00Z", "9999-12-31T23:59:59Z", "ed25519", "HS256", "none", [], [[]], ["1"], [None, None], {},
    {"lower": "0", "upper": "1"}, {"lower": "1", "upper": "0"}, {"alg": "none"}, ["1", "0"], [["1", "0"]],
)  # fmt: skip
RAW: Final = (
    "NaN", "Infinity", "-Infinity", "1e5", "1.0", "4.0", "4e0", "-0", "-0.0", "1e999999999", "01", "+1", "0x10", "tru",
    "undefined", "'1'", '"\\ud800"', '"\\u0000"', '"\\x41"', "1" * 5000, "[" * 40 + "]" * 40, "", "/**/null", "1 1",
)  # fmt: skip
EXTREME: Final = (
    "0", "1e-300", "1e-30", "1e-15", "1e-9", "0.001", "0.999999999999", "1/3", "0.5", "1", "2", "10", "50", "1000",
    "99999", "1e30", "1e300", "0x1.fffffffffffffp+1023", "0x1p-1074", f"1/{'3' * 900}", 0, 1, 7, 100, 1000,
)  # fmt: skip
"""Numbers at which a proof is hard, or has nothing to prove."""
ALIKE: Final = str.maketrans("aeopcxyi01-/.", "аеорсхуі０１－／．")
TOKENS: Final = (
    b"{", b"}", b"[", b"]", b'"', b"\\", b",", b":", b"\x00", b"\xef\xbb\xbf", b"\xff", b"\xc0\xaf", b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80", b"\xe2\x80\xae", b"\\u0000", b"\\ud800", b"\\u0022", b"NaN", b"null", b"1e9999", b"//",
    b"\r\n", b'"signed":', b'"signatures":[]', b'"alg":"none",', b"\x1b[2J", b"\x1f\x8b\x08", b"e", b"-", b".", b"0",
)  # fmt: skip

Random = random.Random
Edit = Callable[[Random, Any, Sequence[Any]], None]


def _any(random: Random, tree: Any, accept: Callable[[Any], bool] = lambda _: True) -> Place | None:
    found = places(tree, accept)
    return random.choice(found) if found else None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_numeral(value: Any) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool) and any(map(str.isdigit, str(value)))


def _is_object(value: Any) -> bool:
    return isinstance(value, Object) and bool(value.fields)


def _delete(random: Random, tree: Any, _: Sequence[Any]) -> None:
    if place := _any(random, tree):
        del place.items[place.index]


def _duplicate(random: Random, tree: Any, _: Sequence[Any]) -> None:
    """The same again, or with another value under the same name."""
    if place := _any(random, tree):
        again = copy.deepcopy(place.items[place.index])
        if isinstance(place.holder, Object) and random.random() < 0.5:
            again[1] = random.choice(VALUES)
        place.items.insert(random.randrange(len(place.items) + 1), again)


def _move(random: Random, tree: Any, _: Sequence[Any]) -> None:
    """A part of the tree is copied or taken to another place."""
    source, target = _any(random, tree), _any(random, tree)
    if source and target:
        value = copy.deepcopy(source.value)
        if random.random() < 0.5:
            source.value = copy.deepcopy(target.value)
        target.value = value


def _replace(random: Random, tree: Any, _: Sequence[Any]) -> None:
    if place := _any(random, tree):
        place.value = Raw(random.choice(RAW)) if random.random() < 0.25 else tree_of(random.choice(VALUES))


def _perturb(random: Random, tree: Any, _: Sequence[Any]) -> None:
    """One digit of one number."""
    if place := _any(random, tree, _is_numeral):
        text = str(place.value)
        at = random.choice([i for i, character in enumerate(text) if character.isdigit()])
        changed = f"{text[:at]}{random.randrange(10)}{text[at + 1 :]}"
        place.value = changed if _is_text(place.value) else Raw(changed)


def _make_extreme(random: Random, tree: Any, _: Sequence[Any]) -> None:
    """One or two numbers of what is claimed."""
    held = ("statement", "parts", "refuted_below", "delta")
    claimed = places(tree, lambda value: isinstance(value, Object) and any(name in held for name, _ in value.fields))
    parts = [Object([field for field in place.value.fields if field[0] in held]) for place in claimed]
    numerals = [place for part in parts for place in places(part, _is_numeral)]
    for _ in range(random.choice((1, 1, 2)) if numerals else 0):
        random.choice(numerals).value = random.choice(EXTREME)


def _respell(random: Random, tree: Any, _: Sequence[Any]) -> None:
    """The same number, written otherwise; the text that was signed is another one."""
    if place := _any(random, tree, _is_numeral):
        text = str(place.value)
        spellings = (f"+{text}", f"0{text}", f"{text}0", f"{text}e0", f"{text}/1", f" {text}", f"{text}\n")
        number = random.choice(
            (*spellings, text.upper(), f"{text}.0", f"{text}E+00", text.translate(ALIKE), f"{text}\u0301")
        )
        place.value = number if _is_text(place.value) or random.random() < 0.5 else Raw(number)


def _escape(random: Random, tree: Any, _: Sequence[Any]) -> None:
    """Some text, a name or a value, with its characters as escapes: the document means the same."""
    holder = _any(random, tree, _is_object)
    if holder is None:
        return
    field = random.choice(holder.value.fields)
    at = 0 if random.random() < 0.5 or not _is_text(field[1]) else 1
    if _is_text(field[at]):
        field[at] = Raw('"' + "".join(f"\\u{unit:04x}" for unit in _utf_16(field[at])) + '"')


def _utf_16(text: str) -> list[int]:
    data = text.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2)]


def _rename(random: Random, tree: Any, _: Sequence[Any]) -> None:
    holder = _any(random, tree, _is_object)
    if holder is None:
        return
    field = random.choice(holder.value.fields)
    name = field[0] if _is_text(field[0]) else "x"
    other = random.choice(places(tree, _is_object)).value.fields[0][0]
    changes = (name.translate(ALIKE), name.upper(), f"{name} ", f"{name}\u200b", f"{name}\x00", "", "\ud800", "x" * 65)
    field[0] = random.choice((*changes, other, f"_{name}", "__proto__", "alg", "constructor"))


def _shuffle(random: Random, tree: Any, _: Sequence[Any]) -> None:
    """The order of an object's fields (which means nothing), or of a list (which does)."""
    if place := _any(random, tree, lambda value: isinstance(value, list) or _is_object(value)):
        random.shuffle(place.value.fields if isinstance(place.value, Object) else place.value)


def _swap(random: Random, tree: Any, _: Sequence[Any]) -> None:
    """Two values change places."""
    one, other = _any(random, tree), _any(random, tree)
    if one and other:
        first, second = copy.deepcopy(one.value), copy.deepcopy(other.value)
        other.value, one.value = first, second


def _text(random: Random, tree: Any, _: Sequence[Any]) -> None:
    """Some text is changed where it may not show."""
    if place := _any(random, tree, _is_text):
        text = place.value
        at = random.randrange(len(text) + 1)
        extra = random.choice((" ", "\x00", "\u200b", "\u202e", "\u0301", "\n", "\x1b[31m", "<script>", "é", "\ud800"))
        changes = (text.upper(), text.translate(ALIKE), text[::-1], text[:at], text + extra)
        place.value = random.choice((*changes, text[:at] + extra + text[at:]))


def _retype(random: Random, tree: Any, _: Sequence[Any]) -> None:
    """The same content as another type."""
    if place := _any(random, tree):
        value = place.value
        wrapped = [[value], Object([["value", value]]), text_of(value), Raw(f"{text_of(value)}.0")]
        if _is_text(value):
            wrapped += [Raw(value), list(value)[:50]]
        place.value = random.choice(wrapped)


def _grow(random: Random, tree: Any, _: Sequence[Any]) -> None:
    """A list many times as long, or a value deep inside itself."""
    if random.random() < 0.3:
        if place := _any(random, tree):
            for _ in range(random.choice((5, 31, 32, 33, 100))):
                place.value = [place.value] if random.random() < 0.5 else Object([["a", place.value]])
    elif place := _any(random, tree, lambda value: isinstance(value, list) and bool(value)):
        again = text_of(place.value[-1])
        count = min(random.choice((2, 17, 40, 300, 1001, 3000)), MAX_BYTES // (len(again) + 2) - 3)
        place.value += [Raw(again)] * max(count, 0)


def _graft(random: Random, tree: Any, others: Sequence[Any]) -> None:
    """A part of another certificate: often the one of the same name."""
    target = _any(random, tree)
    sources = places(tree_of(random.choice(others)))
    if target is None:
        return
    if isinstance(target.holder, Object) and random.random() < 0.8:
        name = target.items[target.index][0]
        same = [p for p in sources if isinstance(p.holder, Object) and p.items[p.index][0] == name]
        sources = same or sources
    target.value = random.choice(sources).value


def _signatures(random: Random, tree: Any, others: Sequence[Any]) -> None:
    """The list of signatures: copied, reordered, taken from elsewhere, under other names."""
    field = next((field for field in tree.fields if field[0] == "signatures"), None) if _is_object(tree) else None
    if field is None or not isinstance(field[1], list):
        return
    listed, other = field[1], tree_of(random.choice(others)["signatures"])
    stranger = Object([["keyid", STRANGER.public_key.keyid], ["sig", "0" * 128]])
    transplanted = copy.deepcopy(other[0])
    transplanted.fields[random.randrange(2)][1] = random.choice(("0" * 64, "0" * 128, "01" + "00" * 63, "", "f" * 64))
    listed[:] = random.choice(
        ([], listed * 2, listed * 17, other, other + listed, listed + other, [stranger, *listed], [*listed, stranger],
         [stranger], [transplanted, *listed], [*listed, transplanted], [{}, *listed], [None], [*listed, [*listed]])
    )  # fmt: skip


EDITS: Final[tuple[Edit, ...]] = (
    _delete, _duplicate, _move, _replace, _perturb, _perturb, _respell, _escape, _rename, _shuffle, _swap, _text,
    _retype, _grow, _graft, _signatures, _make_extreme, _make_extreme,
)  # fmt: skip


def spoil_document(random: Random, data: bytes, others: Sequence[bytes]) -> tuple[bytes, bool]:
    """The certificate with a few edits, perhaps unsigned or signed anew; and whether the trusted key signed that."""
    tree, documents = tree_of(json.loads(data)), [json.loads(other) for other in others]
    for _ in range(random.choice((1, 1, 1, 1, 2, 2, 3, 5))):
        random.choice(EDITS)(random, tree, documents)
    way = random.random()
    resigned = way < 0.2 and _sign_anew(tree, TRUSTED if way < 0.1 else STRANGER)
    if 0.2 <= way < 0.27:
        _set_signatures(tree, [])
    text = text_of(tree)
    return text.encode("utf-8", "surrogatepass"), resigned and way < 0.1


def _sign_anew(tree: Any, signer: Any) -> bool:
    """Whether there is something that can be signed: what a signer sees is the parsed value."""
    document = parsed(tree)
    if not isinstance(document, dict) or "signed" not in document:
        return False
    try:
        keyid, signature = sign(signer, rfc8785.dumps(document["signed"]))
    except (rfc8785.CanonicalizationError, RecursionError, ValueError):
        return False
    _set_signatures(tree, [Object([["keyid", keyid], ["sig", signature]])])
    return True


def _set_signatures(tree: Any, signatures: list[Any]) -> None:
    if _is_object(tree):
        tree.fields = [field for field in tree.fields if field[0] != "signatures"] + [["signatures", signatures]]


def spoil_bytes(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """The certificate with a few edits of its bytes."""
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        data = _spoil_once(random, data, random.choice(others))
    return data


def _spoil_once(random: Random, data: bytes, other: bytes) -> bytes:
    start, stop = sorted((random.randrange(len(data) + 1), random.randrange(len(data) + 1)))
    near = min(start + random.choice((1, 1, 2, 8, 64)), len(data))
    piece = data[start:near]
    way = random.randrange(13)
    if way == 0 and piece:  # one bit
        return data[:start] + bytes([piece[0] ^ 1 << random.randrange(8)]) + data[start + 1 :]
    if way == 1:  # any byte
        return data[:start] + bytes([random.randrange(256)]) + data[start + 1 :]
    if way == 2:
        return data[:start] + random.choice(TOKENS) + data[start:]
    if way == 3:
        return data[:start] + random.choice(TOKENS) + data[near:]
    if way == 4:
        return data[:start] + data[near:]
    if way == 5:
        return data[:start] + data[stop:]
    if way == 6:  # truncated
        return data[:start]
    if way == 7:  # again, a little or up to the limit of size
        most = (MAX_BYTES - len(data)) // max(len(piece), 1)
        times = most + random.choice((-1, 0, 1)) if random.random() < 0.02 else random.choice((1, 2, 33))
        return data[:start] + piece * max(min(times, most + 1), 0) + data[start:]
    if way == 8:  # two certificates in one
        return data[:start] + other[min(start, len(other)) :]
    if way == 9:
        return random.choice((data + other, data + b"\n" + data, other[: len(other) // 2] + data, data + b"\x00"))
    if way == 10:  # white space, which means nothing between tokens
        return data[:start] + random.choice((b" ", b"\t", b"\n", b"\r", b"\x0c", b"\xc2\xa0")) + data[start:]
    if way == 11 and piece:  # two pieces change places
        return data[:start] + data[near:stop] + piece + data[max(stop, near) :]
    return _reencoded(random, data, start)


def _reencoded(random: Random, data: bytes, at: int) -> bytes:
    """The text in another encoding, or one of its characters in more bytes than it needs."""
    text = data.decode("utf-8", "replace")
    character = data[at : at + 1]
    if character and character[0] < 0x80 and random.random() < 0.7:
        overlong = bytes([0xC0 | character[0] >> 6, 0x80 | character[0] & 0x3F])
        wide = chr(0xFEE0 + character[0]).encode() if character[0] > 0x20 else b"\xe3\x80\x80"
        return data[:at] + random.choice((overlong, wide, b"\\u%04x" % character[0])) + data[at + 1 :]
    return text.encode(random.choice(("utf-8-sig", "utf-16", "utf-16-le", "utf-32", "utf-7", "cp037")), "replace")
