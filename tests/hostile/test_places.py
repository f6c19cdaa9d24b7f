"""Files that are no plain files, places that cannot be read, stores that others can write: one line, exit code 2."""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from certificates import files
from certificates.errors import FileError, PermissionsError, TrustStoreError
from certificates.trust import TrustStore
from tests.cli.support import Program, Run
from tests.hostile.conftest import Lay
from tests.hostile.zoo import sound

needs_posix = pytest.mark.skipif(os.name != "posix", reason="POSIX files")
needs_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become nobody")
NOBODY = 65534


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _longer_loop(path: Path) -> None:
    path.symlink_to("other.json")
    path.with_name("other.json").symlink_to(path.name)


def _in_a_loop(path: Path) -> None:
    path.parent.joinpath("loop").symlink_to("loop")
    path.symlink_to("loop/cert.json")


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(100_000_000)


NO_FILE = "something that is not a regular file"
PLACES: dict[str, tuple[Callable[[Path], object], str]] = {
    "symlink_loop": (_loop, "too many levels of symbolic links"),
    "symlink_loop_of_two": (_longer_loop, "too many levels of symbolic links"),
    "link_into_a_loop": (_in_a_loop, "too many levels of symbolic links"),
    "dangling_link": (lambda path: path.symlink_to("nowhere"), "no such file"),
    "fifo": (lambda path: os.mkfifo(path), NO_FILE),
    "link_to_a_fifo": (lambda path: (os.mkfifo(path.with_name("pipe")), path.symlink_to("pipe")), NO_FILE),
    "endless_device": (lambda path: path.symlink_to("/dev/zero"), NO_FILE),
    "null_device": (lambda path: path.symlink_to("/dev/null"), NO_FILE),
    "socket": (_socket, "no such device or address"),
    "100_megabytes": (_sparse, "got 100000000 bytes"),
    "empty_file": (lambda path: path.touch(), "expecting value"),
    "own_memory": (lambda path: path.symlink_to("/proc/self/mem"), ""),
}


@needs_posix
@pytest.mark.parametrize("name", PLACES)
def test_what_is_no_certificate_is_one_line(run: Run, trusting: Path, lay: Lay, name: str) -> None:
    make, reason = PLACES[name]
    make(Path("hostile.json").absolute())
    lay("sound.json")
    ran = run("verify", "hostile.json", "sound.json")
    assert (ran.exit_code, ran.stderr) == (2, "")
    bad, good, summary = ran.stdout.splitlines()
    assert bad.startswith("unusable             hostile.json: ")
    assert reason in bad
    assert good.startswith("verified ")
    assert summary == "2 certificates: 1 unusable, 1 verified"
    for command in (["show"], ["compose", "--delta", "0.1"], ["report", "-o", "x.html"], ["plot", "-o", "x.svg"]):
        ran = run(command[0], "hostile.json", *command[1:])
        assert (ran.exit_code, ran.stdout) == (2, "")
        assert re.fullmatch(r"audit: hostile\.json: got [^\n]+, expected [^\n]+\n", ran.stderr)
        assert not Path("x.html").exists()


@needs_posix
def test_a_directory_of_hostile_files(run: Run, trusting: Path, lay: Lay) -> None:
    Path("all").mkdir()
    for name, (make, _) in PLACES.items():
        Path("all", name).mkdir()
        os.chdir(f"all/{name}")
        make(Path("cert.json").absolute())
        os.chdir("../..")
        os.replace(f"all/{name}/cert.json", f"all/{name}.json")
    Path("all/directory.json").mkdir()
    lay("all/sound.json")
    ran = run("verify", "all", "--json")
    assert (ran.exit_code, ran.stderr) == (2, "")
    found = {Path(item["path"]).stem: item["exit_code"] for item in ran.json["certificates"]}
    assert found == {**dict.fromkeys(PLACES, 2), "directory": 2, "sound": 0}


@needs_posix
@pytest.mark.parametrize(
    "path", ["a" * 300 + ".json", "no/cert.json", "sound.json/cert.json", "\x00.json", "\udcff.json"]
)
def test_a_path_that_leads_nowhere(run: Run, trusting: Path, lay: Lay, path: str) -> None:
    lay("sound.json")
    ran = run("verify", path)
    assert (ran.exit_code, ran.stderr) == (2, "")
    assert len(ran.stdout.splitlines()) == 2
    assert all(line.isprintable() for line in ran.stdout.splitlines())


@needs_posix
def test_the_bytes_that_are_verified_are_read_once(
    run: Run, trusting: Path, lay: Lay, without_pictures: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another file in its place, between two readings, would be reported under the verdict of the first."""
    read: list[str] = []
    real = os.open

    def counted(path: object, *rest: int, **more: int) -> int:
        if os.fspath(path).endswith("cert.json"):  # type: ignore[call-overload]
            read.append("")
            Path("cert.json").write_bytes(sound() if len(read) < 2 else sound("refuted"))
        return real(path, *rest, **more)  # type: ignore[arg-type]

    lay()
    monkeypatch.setattr(files.os, "open", counted)
    for command in (["verify"], ["verify", "--second-opinion"], ["report", "-o", "report.html"]):
        read.clear()
        assert run(*command, "cert.json").exit_code == 0
        assert read == [""]
    assert "refuted" not in re.sub(r"(?s)<(style|svg).*?</\1>", "", Path("report.html").read_text()).split("<h2>")[0]


@needs_posix
def test_a_file_that_would_have_to_be_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some files of /proc are regular, and have nothing to read as yet."""
    os.mkfifo(tmp_path / "file")
    reader = os.open(tmp_path / "file", os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(tmp_path / "file", os.O_WRONLY | os.O_NONBLOCK)
    monkeypatch.setattr(stat, "S_ISREG", lambda mode: True)
    with pytest.raises(FileError, match="nothing to read as yet"):
        files.read_bounded(tmp_path / "file")
    os.close(reader)
    os.close(writer)


# As a user who may not read everything.

BECOME_NOBODY = f"""
import encodings.idna, os
import certificates.inputs, certificates.present, certificates.second, certificates.trust, certificates.verify, cli
os.setgroups([]), os.setgid({NOBODY}), os.setuid({NOBODY})
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A directory that other users can go through; pytest's own are closed to them."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


@needs_root
def test_what_this_user_may_not_read(program: Program, open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, mode in (("closed", 0o700), ("listed", 0o744)):
        (open_folder / name).mkdir(mode=mode)
        (open_folder / name / "cert.json").write_bytes(sound())
    (open_folder / "cert.json").write_bytes(sound())
    (open_folder / "cert.json").chmod(0o600)
    monkeypatch.setenv("AUDIT_HOME", str(open_folder / "none"))
    paths = [open_folder / path for path in ("closed", "closed/cert.json", "listed", "cert.json")]
    with program("verify", *paths, before=BECOME_NOBODY) as process:
        output, error = (text.decode() for text in process.communicate(timeout=120))
    assert (process.returncode, error) == (2, "")
    *lines, summary = output.splitlines()
    assert summary == "4 certificates: 4 unusable"
    assert all(line.startswith("unusable ") and "got permission denied, expected" in line for line in lines)


@needs_root
def test_a_store_that_this_user_may_not_see_is_no_empty_one(
    program: Program, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (open_folder / "closed").mkdir(mode=0o700)
    monkeypatch.setenv("AUDIT_HOME", str(open_folder / "closed/home"))
    with program("trust", "list", before=BECOME_NOBODY) as process:
        output, error = (text.decode() for text in process.communicate(timeout=120))
    assert (process.returncode, output) == (2, "")
    assert error == f"audit: {open_folder}/closed/home: got permission denied, expected the directory of your keys\n"


# The trust store.


def _others_write_the_file(home: Path) -> None:
    (home / "trusted-keys.json").chmod(0o666)


def _group_writes_the_file(home: Path) -> None:
    (home / "trusted-keys.json").chmod(0o620)


def _others_write_the_directory(home: Path) -> None:
    home.chmod(0o777)


def _sticky_directory(home: Path) -> None:
    home.chmod(0o1777)


def _another_owns_the_file(home: Path) -> None:
    os.chown(home / "trusted-keys.json", NOBODY, -1)


def _another_owns_the_directory(home: Path) -> None:
    os.chown(home, NOBODY, -1)


def _link_to_where_others_write(home: Path) -> None:
    (home.parent / "shared").mkdir()
    (home / "trusted-keys.json").rename(home.parent / "shared/keys.json")
    (home / "trusted-keys.json").symlink_to(home.parent / "shared/keys.json")
    (home.parent / "shared").chmod(0o777)


def _link_to_a_directory_of_another(home: Path) -> None:
    _link_to_where_others_write(home)
    (home.parent / "shared").chmod(0o755)
    os.chown(home.parent / "shared", NOBODY, -1)


@needs_posix
@pytest.mark.parametrize(
    "spoil",
    [
        _others_write_the_file,
        _group_writes_the_file,
        _others_write_the_directory,
        _sticky_directory,
        _link_to_where_others_write,
        pytest.param(_another_owns_the_file, marks=needs_root),
        pytest.param(_another_owns_the_directory, marks=needs_root),
        pytest.param(_link_to_a_directory_of_another, marks=needs_root),
    ],
)
def test_a_store_that_others_can_write_is_refused(
    run: Run, trusting: Path, lay: Lay, spoil: Callable[[Path], None]
) -> None:
    lay()
    assert run("verify", "cert.json").exit_code == 0
    spoil(trusting)
    with pytest.raises(PermissionsError):
        TrustStore(trusting)
    for command in (("verify", "cert.json"), ("trust", "list"), ("report", "cert.json", "-o", "report.html")):
        ran = run(*command)
        assert (ran.exit_code, ran.stdout) == (2, "")
        assert re.fullmatch(r"audit: [^\n]+: got (mode|a file of user) [^\n]+, expected [^\n]+\n", ran.stderr)
    assert not Path("report.html").exists()


@needs_posix
def test_a_link_to_a_store_of_ones_own(trusting: Path) -> None:
    _link_to_where_others_write(trusting)
    (trusting.parent / "shared").chmod(0o755)
    assert [item.name for item in TrustStore(trusting).keys] == ["the house"]


@needs_posix
@pytest.mark.parametrize("place", ["home", "store"])
def test_a_store_in_a_loop_is_no_empty_store(trusting: Path, place: str) -> None:
    path = trusting if place == "home" else trusting / "trusted-keys.json"
    path.rename(path.with_name("moved"))
    path.symlink_to(path.name)
    with pytest.raises(FileError, match="too many levels"):
        TrustStore(trusting)


@pytest.mark.parametrize("name", ["\x1b[2Jme", "a\nkeyid  trusted", "\u202eem"])
def test_a_name_in_the_store_that_a_terminal_would_obey(run: Run, trusting: Path, name: str) -> None:
    path = TrustStore(trusting).path
    path.write_text(path.read_text().replace('"the house"', json.dumps(name)))
    with pytest.raises(TrustStoreError, match=r"keys\[0\]\.name: got .* expected printable characters only"):
        TrustStore(trusting)
    ran = run("trust", "list")
    assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert ran.stderr.strip().isprintable()
