"""Which file system a path lies on, where the system says so."""

from __future__ import annotations

from pathlib import Path

_NETWORK = frozenset(
    {
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "davfs",
        "fuse.ceph",
        "fuse.davfs",
        "fuse.glusterfs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.sshfs",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "smb",
        "smb2",
        "smb3",
        "smbfs",
    }
)
_MOUNTS = Path("/proc/mounts")


def network_file_system(path: Path, *, mounts: Path = _MOUNTS) -> str | None:
    """Return the name of the network file system a folder lies on; None for a local one or where nobody says.

    `mounts` lists one mount a line: device, folder, type, options.
    """
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    resolved = path.resolve()
    found = ""
    longest = -1
    for line in lines:
        _, folder, kind, *_ = [*line.split(" "), "", "", ""]
        mounted = Path(_unescaped(folder))
        # The last of several mounts on one folder is the one that is seen.
        if resolved.is_relative_to(mounted) and len(mounted.parts) >= longest:
            found, longest = kind, len(mounted.parts)
    return found if found in _NETWORK else None


def _unescaped(folder: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        folder = folder.replace(code, char)
    return folder
