from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from pytest_captcha_qa.errors import RecordError
from pytest_captcha_qa.reporting.writing import forget_earlier, write_whole


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    link = tmp_path / "latest.html"
    link.symlink_to("page.html")

    write_whole(b"first", link, what="the page")
    write_whole(b"second", link, what="the page")

    assert link.is_symlink()
    assert (tmp_path / "page.html").read_bytes() == b"second"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["latest.html", "page.html"]


def test_a_pipe_or_device_is_written_to_and_neither_replaced_nor_removed(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()

    write_whole(b"a page", pipe, what="the page")
    reader.join(10)
    forget_earlier(pipe)

    assert read == [b"a page"]
    assert pipe.is_fifo()


@pytest.mark.parametrize("place", ["folder", "file/page.html", ""])
def test_a_place_that_cannot_be_written_to_is_told_and_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"old")

    with pytest.raises(RecordError, match="the page cannot be written to"):
        write_whole(b"a page", Path(place), what="the page")

    assert sorted(one.name for one in tmp_path.rglob("*")) == ["file", "folder"]
    assert (tmp_path / "file").read_bytes() == b"old"


def test_what_an_earlier_run_wrote_is_removed(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_bytes(b"old")

    forget_earlier(page)
    forget_earlier(page)

    assert not page.exists()
