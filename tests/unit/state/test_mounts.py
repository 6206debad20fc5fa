"""Which file system a path lies on."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_captcha_qa.state.mounts import network_file_system

MOUNTS = """\
/dev/vda / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
tmpfs /home/me/fast tmpfs rw 0 0
//nas/share /mnt/team\\040share cifs rw 0 0
me@host: /mnt/remote fuse.sshfs rw 0 0
C:\\134 /mnt/c 9p rw 0 0
/dev/vdb /srv ext4 rw 0 0
server:/srv /srv nfs rw 0 0

broken
"""


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/var/cache", None),
        ("/home/me/.cache/captcha-qa", "nfs4"),
        ("/homework", None),
        ("/home/me/fast/x", None),
        ("/mnt/team share/x", "cifs"),
        ("/mnt/remote", "fuse.sshfs"),
        ("/mnt/c/Users", "9p"),
        ("/srv/x", "nfs"),
    ],
)
def test_the_nearest_and_last_mount_decides(tmp_path: Path, path: str, found: str | None) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)
    assert network_file_system(Path(path), mounts=mounts) == found


def test_where_nobody_says_a_path_counts_as_local(tmp_path: Path) -> None:
    assert network_file_system(tmp_path, mounts=tmp_path / "missing") is None
