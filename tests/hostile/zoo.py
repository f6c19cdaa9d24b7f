"""A zoo of hostile certificates: each has a name, is made from a sound one, and has the exit codes that it may have.

The keeper of a case says what stands in the file; ``CASES`` says what verification must say of it. Files that are no
plain files, and stores, are in test_places.py.
"""

from __future__ import annotations

import gzip
import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Any, Final

import rfc8785

from certificates.files import MAX_BYTES
from certificates.signing import PublicKey, sign
from tests.hostile.seeds import STRANGER, TRUSTED, key, seeds
from tests.hostile.tree import Object, Raw, text_of, tree_of

SMALL_ORDER: Final = "01" + "00" * 31
"""The neutral element of edwards25519 as a public key, under which 01 00 … 00 signs very many messages."""

Document = dict[str, Any]
Make = Callable[[], bytes]


def sound(name: str = "plain") -> bytes:
    """A sound certificate."""
    return next(seed.data for seed in seeds() if seed.name == name)


def document(name: str = "plain") -> Document:
    """A sound certificate, parsed."""
    found: Document = json.loads(sound(name))
    return found


def written(changed: Any) -> bytes:
    """As a file."""
    return json.dumps(changed, ensure_ascii=False).encode("utf-8", "surrogatepass")


def signed_by(signer: Any, changed: Document) -> bytes:
    """The document under a new signature, made of what a lenient reader makes of it."""
    keyid, signature = sign(signer, rfc8785.dumps(changed["signed"]))
    return written({"signed": changed["signed"], "signatures": [{"keyid": keyid, "sig": signature}]})


def edit(change: Callable[[Document], Any], name: str = "plain", signer: Any = None) -> Make:
    """The certificate with a change, under the old signature, or a new one."""

    def make() -> bytes:
        changed = document(name)
        change(changed)
        return written(changed) if signer is None else signed_by(signer, changed)

    return make


def text(old: str, new: str, name: str = "plain") -> Make:
    """The certificate with one text in place of another, once."""

    def make() -> bytes:
        before = json.dumps(document(name), ensure_ascii=False)
        assert old in before
        return before.replace(old, new, 1).encode("utf-8", "surrogatepass")

    return make


def set_at(path: str, value: Any) -> Callable[[Document], None]:
    """A change of one field of ``signed``, at a dotted path."""

    def change(changed: Document) -> None:
        *way, last = path.split(".")
        place: Any = changed["signed"]
        for part in way:
            place = place[part]
        place[last] = value

    return change


def signatures(change: Callable[[list[dict[str, Any]]], Any]) -> Make:
    """The certificate with other signatures; ``change`` gets the sound ones."""
    return lambda: written({**(found := document()), "signatures": change(found["signatures"])})


def one_signature(**fields: Any) -> Make:
    """The certificate with fields of its signature replaced, or more of them."""
    return signatures(lambda old: [{**old[0], **fields}])


def _hmac(algorithm: str) -> str:
    """What is made with the public key as a secret, as wide as a signature."""
    secret = bytes.fromhex(PublicKey.of_signer(TRUSTED).text)
    made = hmac.new(secret, rfc8785.dumps(document()["signed"]), algorithm).hexdigest()
    return (made * 2)[:128]


def _transplanted() -> bytes:
    return written({**document("gaussian"), "signatures": document("laplace")["signatures"]})


def _escaped_names() -> bytes:
    """Every name of every object, escape by escape."""

    def escaped(node: Any) -> Any:
        if isinstance(node, Object):
            return Object([[Raw(f'"{_escapes(name)}"'), escaped(value)] for name, value in node.fields])
        return [escaped(value) for value in node] if isinstance(node, list) else node

    return text_of(escaped(tree_of(document()))).encode()


def _escapes(name: str) -> str:
    return "".join(f"\\u{ord(character):04x}" for character in name)


def _reversed_names() -> bytes:
    def turned(node: Any) -> Any:
        if isinstance(node, dict):
            return {name: turned(value) for name, value in reversed(node.items())}
        return [turned(value) for value in node] if isinstance(node, list) else node

    return json.dumps(turned(document())).encode()


def _twice_at(path: str) -> Make:
    """A certificate in which the last name of a path stands twice, the second time with null."""

    def make() -> bytes:
        tree = tree_of(document())
        *way, last = path.split(".")
        place = tree
        for part in way:
            place = next(value for name, value in place.fields if name == part) if part != "0" else place[0]
        place.fields.append([last, None])
        return text_of(tree).encode()

    return make


def _deep(around: Callable[[str], str], levels: int) -> Make:
    return text('"delta": "1e-6"', f'"delta": {around("x").partition("x")[0] * levels}')


_NEXT = "ﬁ"  # one character, the letters f and i in NFKC
CASES: Final[dict[str, tuple[Make, tuple[int, ...]]]] = {
    # The same certificate, written otherwise: a signature is of the RFC 8785 bytes of the parsed value.
    "names_escaped": (_escaped_names, (0,)),
    "names_in_another_order": (_reversed_names, (0,)),
    "blanks_and_line_breaks": (lambda: json.dumps(document(), indent="\t\n\r ").encode(), (0,)),
    "slash_escaped": (text('"rho": "1/18"', '"rho": "1\\/18"', "rho"), (0,)),
    "signature_counted_twice": (signatures(lambda old: old * 2), (0,)),
    # Signatures.
    "signature_twice_of_a_stranger": (lambda: edit(lambda d: d.update(signatures=d["signatures"] * 2))().replace(
        TRUSTED.public_key.keyid.encode(), b"0" * 64), (4,)),
    "no_signatures": (signatures(lambda old: []), (4,)),
    "hundred_thousand_signatures": (signatures(lambda old: [{"keyid": "", "sig": ""}] * 100_000), (2,)),
    "forty_thousand_signatures": (signatures(lambda old: [{"keyid": "", "sig": ""}] * 40_000), (2,)),
    "seventeen_signatures": (signatures(lambda old: old * 17), (2,)),
    "signatures_of_other_keys_first": (
        signatures(lambda old: [{"keyid": "0" * 64, "sig": "0" * 128}] * 15 + old), (0,)),
    "signatures_as_an_object": (signatures(lambda old: {"0": old[0]}), (2,)),
    "another_algorithm_named": (one_signature(alg="HS256"), (2,)),
    "no_algorithm_named": (one_signature(alg="none"), (2,)),
    "another_keytype_named": (one_signature(keytype="ecdsa"), (2,)),
    "another_scheme_named": (one_signature(scheme="rsassa-pss-sha256"), (2,)),
    "the_key_beside_its_signature": (one_signature(public=PublicKey.of_signer(TRUSTED).text), (2,)),
    "hmac_sha512_with_the_public_key": (one_signature(sig=_hmac("sha512")), (4,)),
    "hmac_sha256_with_the_public_key": (one_signature(sig=_hmac("sha256")), (4,)),
    "keyid_of_another_trusted_key": (one_signature(keyid=key("another").public_key.keyid), (4,)),
    "keyid_is_a_hash_of_the_raw_key": (
        one_signature(keyid=hashlib.sha256(bytes.fromhex(PublicKey.of_signer(TRUSTED).text)).hexdigest()), (4,)),
    "keyid_is_the_key": (one_signature(keyid=PublicKey.of_signer(TRUSTED).text), (4,)),
    "keyid_in_full_width_digits": (signatures(lambda old: [
        {**old[0], "keyid": "".join(chr(ord(c) + 0xFEE0) if c.isdigit() else c for c in old[0]["keyid"])}]), (4,)),
    "keyid_with_a_blank": (signatures(lambda old: [{**old[0], "keyid": f"{old[0]['keyid'][:-1]} "}]), (4,)),
    "keyids_swapped": (lambda: written({**(d := document()), "signatures": [
        {"keyid": "f" * 64, "sig": d["signatures"][0]["sig"]}, {"keyid": d["signatures"][0]["keyid"], "sig": "0" * 128},
    ]}), (4,)),
    "small_order_key_named": (
        one_signature(keyid=hashlib.sha256(bytes.fromhex(SMALL_ORDER)).hexdigest(), sig="01" + "00" * 63), (4,)),
    "small_order_signature": (one_signature(sig="01" + "00" * 63), (4,)),
    "signature_of_another_certificate": (_transplanted, (4,)),
    "signature_with_the_order_added": (signatures(lambda old: [{**old[0], "sig": _malleable(old[0]["sig"])}]), (4,)),
    "resigned_by_a_stranger": (edit(lambda d: None, signer=STRANGER), (4,)),
    "changed_and_resigned_by_a_stranger": (edit(set_at("statement.claim.delta", "0.5"), signer=STRANGER), (1,)),
    "refuted_and_resigned_by_a_stranger": (edit(lambda d: None, "refuted", STRANGER), (1,)),
    "refuted_and_unsigned": (edit(lambda d: d.update(signatures=[]), "refuted"), (1,)),
    "verdict_changed_by_hand": (edit(set_at("verdict", "verified"), "refuted"), (1,)),
    "verdict_changed_and_signed": (edit(set_at("verdict", "verified"), "refuted", TRUSTED), (1,)),
    "statement_of_another_certificate": (
        edit(lambda d: d["signed"].update(statement=document("laplace")["signed"]["statement"])), (1,)),
    "signed_statement_of_another_type": (edit(set_at("_type", "sigmacert receipt"), signer=TRUSTED), (2,)),
    "composition_for_a_certificate": (edit(set_at("_type", "sigmacert composition"), signer=TRUSTED), (2,)),
    "certificate_for_a_composition": (edit(set_at("_type", "sigmacert certificate"), "composition", TRUSTED), (2,)),
    "both_types": (edit(lambda d: d["signed"].update(document("composition")["signed"]), signer=TRUSTED), (2,)),
    "list_of_two_certificates": (lambda: written([document(), document()]), (2,)),
    # Names and text.
    "name_with_a_cyrillic_letter": (text('"verdict"', '"vеrdict"'), (2,)),
    "name_in_full_width_letters": (text('"signed"', '"ｓｉｇｎｅｄ"'), (2,)),
    "name_in_capitals": (text('"sigma"', '"Sigma"'), (2,)),
    "name_with_a_blank": (text('"sigma"', '"sigma "'), (2,)),
    "name_with_a_null": (text('"sigma"', '"sigma\\u0000"'), (2,)),
    "name_with_no_width": (text('"sigma"', '"sigma\u200b"'), (2,)),
    "name_of_a_prototype": (text('"sigma": ', '"__proto__": {}, "sigma": '), (2,)),
    "empty_name": (text('"sigma": ', '"": "1", "sigma": '), (2,)),
    "decomposed_text": (edit(set_at("evidence.note", "e\u0301"), signer=TRUSTED), (0,)),
    "composed_text_for_decomposed": (lambda: edit(set_at("evidence.note", "e\u0301"), signer=TRUSTED)().replace(
        b"e\xcc\x81", "\u00e9".encode()), (4,)),
    "compatibility_character": (edit(set_at("statement.claim.kind", f"{_NEXT}rst"), signer=TRUSTED), (2,)),
    "lone_surrogate_as_an_escape": (text('"note": "for tests"', '"note": "\\ud800"'), (2,)),
    "lone_surrogate_in_a_name": (text('"note"', '"\\udfff"'), (2,)),
    "lone_surrogate_in_bytes": (text('"note": "for tests"', '"note": "\udfff"'), (2,)),
    "surrogates_the_wrong_way_round": (text('"note": "for tests"', '"note": "\\ude00\\ud83d"'), (2,)),
    "surrogate_pair_as_escapes": (
        lambda: edit(set_at("evidence.note", "\U0001f600"), signer=TRUSTED)().replace(
            "\U0001f600".encode(), b"\\ud83d\\ude00"), (0,)),
    "surrogate_pair_in_cesu_8": (
        lambda: sound().replace(b"for tests", b"\xed\xa0\xbd\xed\xb8\x80"), (2,)),
    "null_in_a_string": (text('"family": "gaussian"', '"family": "gaussian\\u0000"'), (2,)),
    "null_byte": (lambda: sound().replace(b"gaussian", b"gauss\x00an"), (2,)),
    "null_byte_at_the_end": (lambda: sound() + b"\x00", (2,)),
    "control_sequence_in_the_note": (edit(set_at("evidence.note", "\x1b[2J"), signer=TRUSTED), (2,)),
    "direction_turned_in_the_note": (edit(set_at("evidence.note", "\u202edeifirev"), signer=TRUSTED), (2,)),
    "line_separator_in_the_tool": (edit(set_at("tool.name", "a\u2028b"), signer=TRUSTED), (2,)),
    "invisible_tag_in_the_reason": (edit(set_at("evidence.reason", "ok\U000e0041"), signer=TRUSTED), (2,)),
    # Numbers.
    "full_width_digits": (edit(set_at("statement.claim.delta", "１e-6"), signer=TRUSTED), (2,)),
    "arabic_digits": (edit(set_at("statement.claim.delta", "٠.١"), signer=TRUSTED), (2,)),
    "superscript_exponent": (edit(set_at("statement.claim.delta", "10⁻⁶"), signer=TRUSTED), (2,)),
    "digits_in_groups": (edit(set_at("statement.claim.delta", "0.000_001"), signer=TRUSTED), (2,)),
    "minus_sign_of_typography": (edit(set_at("statement.claim.delta", "1e−6"), signer=TRUSTED), (2,)),
    "million_digits": (edit(set_at("statement.claim.delta", "0." + "0" * 999_990 + "1")), (2,)),
    "million_digits_as_a_number": (text('"boxes": ', '"boxes": ' + "1" * 1_000_000), (2,)),
    "million_digits_below": (edit(set_at("statement.claim.delta", "1/" + "9" * 1_000_000)), (2,)),
    "million_digits_of_hex": (edit(set_at("statement.mechanism.sigma", "0x1." + "f" * 1_000_000)), (2,)),
    "million_digits_of_exponent": (edit(set_at("statement.mechanism.sigma", "1e" + "9" * 1_000_000)), (2,)),
    "huge_exponent": (edit(set_at("statement.claim.delta", "1e-999999999"), signer=TRUSTED), (2,)),
    "huge_exponent_as_a_number": (text('"boxes": ', '"boxes": 1e999999999, "x": '), (2,)),
    "huge_rational": (edit(set_at("statement.mechanism.sigma", f"{'7' * 480}/{'3' * 480}"), signer=TRUSTED), (1,)),
    "over_nothing": (edit(set_at("statement.mechanism.sigma", "5/0"), signer=TRUSTED), (2,)),
    "not_a_number": (edit(set_at("statement.claim.delta", "nan"), signer=TRUSTED), (2,)),
    "infinity": (edit(set_at("statement.mechanism.sigma", "inf"), signer=TRUSTED), (2,)),
    "whole_number_as_a_float": (text('"boxes": 0', '"boxes": 0.0'), (2,)),
    "whole_number_with_an_exponent": (text('"bits": 128', '"bits": 128e0'), (2,)),
    "minus_nothing": (text('"boxes": 0', '"boxes": -0'), (0,)),
    "minus_nothing_as_a_float": (text('"boxes": 0', '"boxes": -0.0'), (2,)),
    "number_that_begins_with_0": (text('"boxes": 0', '"boxes": 00'), (2,)),
    "true_for_a_count": (edit(set_at("evidence.bits", True)), (2,)),
    "count_that_readers_round": (edit(set_at("evidence.bits", 2**53 + 1)), (2,)),
    "number_for_a_text": (edit(set_at("statement.mechanism.sensitivity", 1), signer=TRUSTED), (0,)),
    "number_for_a_text_unsigned": (edit(set_at("statement.mechanism.sensitivity", 1)), (4,)),
    "same_number_other_text": (edit(set_at("statement.claim.delta", "0.000001")), (4,)),
    # Structure.
    **{f"{path}_twice".replace(".", "_"): (_twice_at(path), (2,)) for path in (
        "signed", "signatures", "signed.verdict", "signed.statement", "signed.statement.claim",
        "signed.statement.claim.delta", "signed.statement.mechanism.sigma", "signed.evidence.sup_delta",
        "signed.evidence.sup_delta.lower", "signed.tool.name", "signatures.0.sig", "signatures.0.keyid")},
    "name_twice_by_an_escape": (text('"verdict": ', '"\\u0076erdict": "refuted", "verdict": '), (2,)),
    "lists_of_33_levels": (_deep(lambda x: f"[{x}]", 33), (2,)),
    "lists_of_100000_levels": (_deep(lambda x: f"[{x}]", 100_000), (2,)),
    "objects_of_100000_levels": (_deep(lambda x: f'{{"a":{x}}}', 100_000), (2,)),
    "byte_order_mark": (lambda: b"\xef\xbb\xbf" + sound(), (2,)),
    "utf_16": (lambda: sound().decode().encode("utf-16"), (2,)),
    "utf_32": (lambda: sound().decode().encode("utf-32-be"), (2,)),
    "overlong_slash": (lambda: sound("rho").replace(b"1/18", b"1\xc0\xaf18"), (2,)),
    "trailing_garbage": (lambda: sound() + b"garbage", (2,)),
    "two_documents": (lambda: sound() + sound(), (2,)),
    "another_document_first": (lambda: b"{}\n" + sound(), (2,)),
    "comments": (lambda: b"// sound\n" + sound(), (2,)),
    "empty": (lambda: b"", (2,)),
    "null": (lambda: b"null", (2,)),
    "blanks_up_to_the_limit": (lambda: sound() + b" " * (MAX_BYTES - len(sound())), (0,)),
    "blanks_beyond_the_limit": (lambda: sound() + b" " * (MAX_BYTES - len(sound()) + 1), (2,)),
    "gzip": (lambda: gzip.compress(sound()), (2,)),
    "binary": (lambda: bytes(range(256)) * 40, (2,)),
    "script": (lambda: b"#!/bin/sh\ntouch /tmp/owned\n", (2,)),
    "many_names": (lambda: ("{" + ",".join(f'"{i}":0' for i in range(90_000)) + "}").encode(), (2,)),
    "many_lists": (lambda: b'{"signed":[' + b"[]," * 340_000 + b"0]}", (2,)),
    "many_conditions": (edit(set_at("evidence.conditions", [
        {"name": "", "demand": "", "value": {"lower": "0", "upper": "0"}, "verdict": "verified"}] * 9_000)), (1,)),
    # What takes long to prove.
    "thousand_components": (edit(set_at("statement.mechanism", {
        "family": "multi-gaussian", "sensitivity": "1", "sigma": "0.05", "K": 1000, "epsilon": "0.001"})), (1, 4)),
    "thousand_pieces": (edit(set_at("statement.mechanism", {"family": "declared", "sensitivity": "1", "pieces": [
        {"from": f"{i}", "to": f"{i + 1}" if i < 999 else "inf", "c": "1", "lines": [[f"{-i}", "0.1"]]}
        for i in range(1000)]})), (1, 4)),
    "thousand_denominators": (edit(set_at("statement.mechanism", {
        "family": "declared", "sensitivity": "1", "sigma": "1",
        "components": [["1", f"{3**800 + i}/{7**500 + 2 * i}"] for i in range(1000)]})), (2,)),
    "event_of_20000_intervals": (edit(lambda d: d["signed"]["evidence"]["refutation"].update(
        event=[[f"{2 * i}", f"{2 * i + 1}"] for i in range(20_000)]), "gaussian", TRUSTED), (3,)),
}  # fmt: skip
"""What is in the file, and the exit codes that are right."""


def _malleable(signature: str) -> str:
    """The signature (R, S + the order of the group), which some libraries take for one too."""
    order = 2**252 + 27742317777372353535851937790883648493
    number = int.from_bytes(bytes.fromhex(signature[64:]), "little") + order
    return signature[:64] + number.to_bytes(32, "little").hex()
