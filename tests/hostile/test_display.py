"""What a certificate, a path or a store says reaches no terminal as a command, and no page as markup."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.certificates.support import TIME
from tests.cli.support import Program, Run
from tests.hostile.conftest import Lay
from tests.hostile.zoo import signatures

needs_posix = pytest.mark.skipif(os.name != "posix", reason="POSIX terminals and names of files")
ESCAPES = {
    "colour": "\x1b[31m",
    "title": "\x1b]0;verified\x07",
    "eight_bit_escape": "\x9b2J",
    "new_line": "\nverified             good.json",
    "carriage_return": "\rverified",
    "backspace": "bad\b\b\bok ",
    "direction": "\u202eosj.doog",
    "isolate": "\u2066x\u2069",
    "line_separator": "\u2028verified",
    "no_width": "\u200b",
    "lone_surrogate": "\udcff",
    "tag": "\U000e0041",
}


def _is_plain(text: str) -> bool:
    return all(character.isprintable() or character == "\n" for character in text)


@needs_posix
@pytest.mark.parametrize("name", ESCAPES)
def test_the_name_of_a_file(run: Run, trusting: Path, lay: Lay, without_pictures: None, name: str) -> None:
    path = lay(f"{ESCAPES[name]}.json")
    missing = f"{ESCAPES[name]}x.json"
    for arguments, code, lines in (
        (("verify", path), 0, 2),
        (("verify", missing), 2, 2),
        (("show", path), 0, None),
        (("show", missing), 2, 0),
        (("compose", path, "--delta", "0.1"), 0, None),
        (("compose", missing, "--delta", "0.1"), 2, 0),
        (("certify", missing), 2, 0),
        (("report", path, "-o", "report.html"), 0, 2),
        (("verify", path, "--json"), 0, 1),
    ):
        ran = run(*arguments)
        assert ran.exit_code == code, arguments
        assert _is_plain(ran.stdout) and _is_plain(ran.stderr), arguments
        assert lines is None or ran.stdout.count("\n") == lines
        assert ran.stderr.count("\n") == (1 if lines == 0 else 0)
    page = Path("report.html").read_text()
    assert _is_plain(page)


@needs_posix
def test_the_name_of_a_file_beside_the_progress(program: Program, trusting: Path, lay: Lay) -> None:
    import pty

    path = lay("\x1b]0;pwned\x07.json")
    ours, theirs = pty.openpty()
    with program("verify", path, stderr=theirs) as process:
        os.close(theirs)
        process.communicate(timeout=120)
        shown = b""
        with os.fdopen(ours, "rb", buffering=0) as terminal:
            try:
                while part := terminal.read(4096):
                    shown += part
            except OSError:  # How Linux says that the other end is closed.
                pass
    assert process.returncode == 0
    assert "pwned" in shown.decode()
    assert b"\x07" not in shown and b"\x1b]" not in shown


@pytest.mark.parametrize("name", ESCAPES)
def test_text_of_a_certificate(run: Run, trusting: Path, lay: Lay, name: str) -> None:
    """In its text it is refused; as the name of a key, which only chooses among the trusted ones, it is shown plain."""
    escape = ESCAPES[name]
    Path("keyid.json").write_bytes(signatures(lambda old: [*old, {"keyid": escape, "sig": escape}])())
    ran = run("verify", "keyid.json")
    assert ran.exit_code == (2 if name == "lone_surrogate" else 0)
    for arguments in (("show", "keyid.json"), ("show", "keyid.json", "--json"), ("verify", "keyid.json", "--json")):
        ran = run(*arguments)
        assert _is_plain(ran.stdout) and _is_plain(ran.stderr)
    if name == "lone_surrogate":
        return

    def note(document: Any) -> None:
        document["signed"]["evidence"]["note"] = escape

    lay("note.json", note)
    for arguments in (("verify", "note.json"), ("show", "note.json"), ("report", "note.json", "-o", "report.html")):
        ran = run(*arguments)
        assert ran.exit_code == 2
        assert _is_plain(ran.stdout) and _is_plain(ran.stderr)
        assert (ran.stdout + ran.stderr).count("\n") <= 2
    assert not Path("report.html").exists()


def _field(name: str, text: str) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        for part in (document["signed"]["statement"]["mechanism"], document["signed"]["statement"]["claim"]):
            if name in part:
                part[name] = text

    return change


@pytest.mark.parametrize("field", ["family", "sigma", "kind", "delta"])
def test_fields_of_the_statement_are_refused_in_one_plain_line(run: Run, trusting: Path, lay: Lay, field: str) -> None:
    lay("cert.json", _field(field, "\x1b[2J\nverified             good.json\u202e"))
    for arguments in (("verify", "cert.json"), ("show", "cert.json"), ("plot", "cert.json", "-o", "x.svg")):
        ran = run(*arguments)
        assert ran.exit_code == 2
        assert _is_plain(ran.stdout) and _is_plain(ran.stderr)
        assert not any(line.startswith("verified") for line in ran.stdout.splitlines())


# Pages.

MARKUP = (
    "<script>alert(1)</script>",
    "</td></tr></table><img src=x onerror=alert(1)>",
    "</style></title><svg/onload=alert(1)>",
    "\" onmouseover='alert(1)' x=\"",
    "]]><!--<iframe src=//evil>",
    "&lt;script&gt;&#x3c;b&#62;",
    "javascript:alert(1)",
)


class _Page(HTMLParser):
    """The tags outside the picture, and their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self._svg = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._svg += tag == "svg"
        if not self._svg:
            self.tags.add(tag)
            self.attributes |= {name for name, _ in attrs}
        assert tag not in ("script", "img", "iframe", "object", "embed", "link", "base", "form", "a") or self._svg
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        self._svg -= tag == "svg"

    def handle_data(self, data: str) -> None:
        self.text += data


@needs_posix
def test_markup_in_a_report_is_text(run: Run, trusting: Path, lay: Lay) -> None:
    """One certificate with all of it in every text that it has, in a file whose name is markup too."""
    lay("plain.json")
    assert run("report", "plain.json", "-o", "plain.html").exit_code == 0
    plain = _Page(Path("plain.html").read_text())
    everything = " ".join(MARKUP)

    def change(document: Any) -> None:
        signed = document["signed"]
        signed["evidence"].update(reason=everything, note=everything)
        signed["tool"] = dict.fromkeys(signed["tool"], everything)

    path = lay("\"><img src=x onerror=alert(1)>'&.json", change)
    data = Path(path).read_bytes()
    Path(path).write_bytes(data.replace(b'"signatures": [', b'"signatures": [{"keyid": "<b>&\'\\"><i>", "sig": ""}, '))
    ran = run("report", path, "-o", "hostile.html")
    assert ran.exit_code == 0, ran.stdout
    hostile = _Page(Path("hostile.html").read_text())
    assert (hostile.tags, hostile.attributes) == (plain.tags, plain.attributes)
    assert hostile.text.count(everything) >= 3
    picture = re.search(r"(?s)<svg.*</svg>", Path("hostile.html").read_text())
    assert picture is not None
    assert not any(text in picture[0] for text in MARKUP)


def test_markup_in_a_picture(run: Run, trusting: Path, lay: Lay) -> None:
    """Nothing but numbers gets into a picture."""

    def change(document: Any) -> None:
        document["signed"]["evidence"].update(note="<script>alert(1)</script>", reason="$\\frac{x}{y}$")
        document["signed"]["tool"]["name"] = "</svg><script>"

    lay("cert.json", change)
    assert run("plot", "cert.json", "-o", "cert.svg").exit_code == 0
    text = Path("cert.svg").read_text()
    assert "<script" not in text and "alert" not in text and text.count("</svg>") == 1


# The clock.


def _issued(text: str) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        document["signed"]["issued"] = text

    return change


@pytest.mark.parametrize("of", ["plain", "composition"])
def test_a_certificate_from_the_future_is_a_warning(run: Run, trusting: Path, lay: Lay, of: str) -> None:
    lay("now.json", of=of)
    assert TIME.year < 2027
    lay("future.json", _issued("9998-12-31T23:59:59Z"), of)
    ran = run("verify", "now.json", "future.json")
    assert (ran.exit_code, len(ran.stdout.splitlines())) == (0, 3)
    assert re.fullmatch(
        r"audit: future\.json: warning: issued at 9998-12-31T23:59:59Z, which is still to come by the clock here "
        r"\(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\)\n",
        ran.stderr,
    )
    assert run("verify", "future.json", "--quiet").stderr == ""
    ran = run("verify", "now.json", "future.json", "--json")
    assert (ran.exit_code, ran.stderr) == (0, "")
    now, future = ran.json["certificates"]
    assert now["warning"] is None
    assert future["warning"].startswith("issued at 9998-12-31T23:59:59Z, which is still to come")


def test_a_report_on_a_certificate_from_the_future(run: Run, trusting: Path, lay: Lay, without_pictures: None) -> None:
    lay("future.json", _issued("9998-12-31T23:59:59Z"))
    ran = run("report", "future.json", "-o", "report.html")
    assert (ran.exit_code, ran.stderr.count("warning: issued at 9998")) == (0, 1)
    assert "Warning: issued at 9998-12-31T23:59:59Z" in Path("report.html").read_text()
