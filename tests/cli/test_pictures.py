"""``audit plot`` and ``audit report``, and the page in a real browser."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cli import main
from tests.cli.support import ClaimFile, Ran, Run

image = pytest.importorskip("matplotlib.image", reason="pictures need the extra plot")

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--proxy-server=127.0.0.1:9",  # nothing listens there: what the page would load would fail
    "--window-size=1100,2400",
)
HOSTILE = "<script>document.title='run'</script>"


def _invoke(*arguments: str | Path) -> Ran:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)


@pytest.fixture
def certificate(run: Run, claim: ClaimFile) -> Path:
    run("certify", claim("4.5"), "-o", "cert.json")
    return Path("cert.json").absolute()


def test_plot_writes_a_picture(certificate: Path) -> None:
    ran = _invoke("plot", certificate, "-o", "cert.svg", "--json")
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert (ran.json["verdict"], ran.json["picture"]) == ("verified", "cert.svg")
    assert Path("cert.svg").read_bytes().startswith(b"<?xml")
    ran = _invoke("plot", certificate, "-o", "cert.PNG")
    assert ran.exit_code == 0
    assert ran.stdout.splitlines()[1] == "  picture  cert.PNG"
    assert image.imread(io.BytesIO(Path("cert.PNG").read_bytes())).ndim == 3


def test_a_refuted_claim_can_be_drawn(run: Run, claim: ClaimFile) -> None:
    run("certify", claim("4"), "-o", "cert.json")
    ran = _invoke("plot", "cert.json", "-o", "cert.svg")
    assert ran.exit_code == 0
    assert ran.stdout.startswith("refuted: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plot", "cert.json"], "--output: Missing option"),
        (["plot", "cert.json", "-o", "cert.pdf"], "--output: got cert.pdf, expected a name that ends in .svg or .png"),
        (["plot", "cert.json", "-o", "none/cert.svg"], "none/cert.svg: got a path where no file can be written"),
        (["plot", "none.json", "-o", "cert.svg"], "none.json: got no such file"),
        (["report", "cert.json", "-o", "cert.svg"], "--output: got cert.svg, expected a name that ends in .html"),
        (["report", "bad.json", "-o", "cert.html"], "bad.json: signed: got nothing, expected this field"),
    ],
)
def test_refusals_in_one_line(certificate: Path, arguments: list[str], message: str) -> None:
    Path("bad.json").write_text("{}")
    ran = _invoke(*arguments)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"audit: {message}") and ran.stderr.count("\n") == 1
    assert not list(Path().glob("*.svg")) and not list(Path().glob("*.html"))


def test_without_matplotlib_one_line_says_what_to_install(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "matplotlib" else find(name, *rest)
    )
    for command, output in (("plot", "cert.svg"), ("report", "cert.html")):
        ran = _invoke(command, certificate, "-o", output)
        assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
        assert "pip install 'sigmacert[plot]'" in ran.stderr
        assert not Path(output).exists()


def test_a_statement_that_cannot_be_drawn_is_one_line(certificate: Path) -> None:
    document: Any = json.loads(certificate.read_text())
    document["signed"]["statement"]["mechanism"] |= {"sensitivity": "1e-300", "sigma": "1e-299"}
    certificate.write_text(json.dumps(document))
    ran = _invoke("plot", certificate, "-o", "cert.svg")
    assert (ran.exit_code, ran.stderr.count("\n")) == (2, 1)
    assert "beyond the range of floats" in ran.stderr
    # A page can do without the picture, and says why.
    assert _invoke("report", certificate, "-o", "report.html").exit_code == 1
    assert "No pictures: signed.statement: got numbers beyond the range of floats" in Path("report.html").read_text()


def test_report_exits_as_verify_does(certificate: Path) -> None:
    ran = _invoke("report", certificate, "-o", "report.html", "--json")
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert (ran.json["signature"], ran.json["report"]) == ("trusted", "report.html")
    assert "Signature: <strong>trusted</strong>" in Path("report.html").read_text()


@pytest.mark.skipif(BROWSER is None, reason=f"no browser here: none of {', '.join(BROWSERS)}")
def test_the_page_in_a_browser(certificate: Path, tmp_path: Path) -> None:
    document: Any = json.loads(certificate.read_text())
    document["signed"]["evidence"]["note"] = HOSTILE
    certificate.write_text(json.dumps(document))  # no longer signed, and the page says so
    assert _invoke("report", certificate, "-o", "report.html").exit_code == 4
    address = (tmp_path / "report.html").as_uri()

    def browse(*more: str) -> str:
        home = tmp_path / "browser"
        home.mkdir(exist_ok=True)
        command = [str(BROWSER), *FLAGS, f"--user-data-dir={home / 'data'}", *more, address]
        environment = {**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(home), "XDG_CACHE_HOME": str(home)}
        done = subprocess.run(command, capture_output=True, timeout=120, env=environment, check=True)
        return done.stdout.decode()

    dom = browse("--dump-dom")
    assert "<title>" in dom and "<title>run</title>" not in dom
    assert re.search(r'<div class="verdict failed" id="verdict"><strong>invalid signature</strong>', dom)
    assert "by gaussian noise (sigma = 4.5)" in dom
    assert dom.count("<svg") == 1 and dom.count("</svg>") == 1
    assert "<script" not in dom

    browse(f"--screenshot={tmp_path / 'page.png'}")
    seen = image.imread(io.BytesIO((tmp_path / "page.png").read_bytes()))[..., :3]
    assert seen.shape[0] == 2400
    red, green, blue = (seen[..., i] for i in range(3))
    box = (red > 0.9) & (green < 0.95) & (blue < 0.95) & (red > green + 0.03)
    assert box[:600].mean() > 0.05  # the box of the verdict, at the top
    curve = (blue > red + 0.15) & (blue > green)
    assert curve[600:].sum() > 1000  # the pictures' blue
