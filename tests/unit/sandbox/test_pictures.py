from __future__ import annotations

import re
import zlib

import pytest

from pytest_captcha_qa.sandbox import pictures


def test_a_new_text_carries_the_mark_and_is_another_each_time() -> None:
    texts = {pictures.new_text() for _ in range(20)}
    assert len(texts) > 15
    assert all(re.fullmatch(r"QATEST\d{5}", text) for text in texts)


def test_an_image_is_a_png_of_a_size_that_services_take() -> None:
    image = pictures.drawn("QATEST09815")
    assert image.startswith(b"\x89PNG\r\n\x1a\n")
    assert image.endswith(b"IEND" + zlib.crc32(b"IEND").to_bytes(4, "big"))
    assert 1024 <= len(image) <= 100_000


def test_the_sandbox_reads_its_own_images() -> None:
    assert pictures.read(pictures.drawn("QATEST67234")) == "QATEST67234"


@pytest.mark.parametrize("image", [b"", b"GIF89a", b"\x89PNG\r\n\x1a\n", b"\x89PNG\r\n\x1a\n" + b"\xff" * 40])
def test_other_images_have_no_text(image: bytes) -> None:
    assert pictures.read(image) == ""
