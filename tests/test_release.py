"""A release has a version, a section of the changelog, and a workflow that stores no password."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from rlplay.version import __version__

ROOT = Path(__file__).parents[1]
notes = runpy.run_path(str(ROOT / ".ci" / "version"))["notes"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project at version 1.2.3 with two sections in its changelog."""
    (tmp_path / "rlplay").mkdir()
    (tmp_path / "rlplay" / "version.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## [1.2.3] - 2026-01-02\n\nNew.\n\n## [1.2.2] - 2025-01-02\n\nOld.\n"
    )
    return tmp_path


def test_the_notes_are_the_section_of_the_version(project: Path) -> None:
    assert notes("v1.2.3", project) == "New."


def test_another_tag_is_refused(project: Path) -> None:
    with pytest.raises(SystemExit, match=r"v1\.2\.4 is not the version"):
        notes("v1.2.4", project)


def test_a_version_without_a_date_is_refused(project: Path) -> None:
    (project / "CHANGELOG.md").write_text("## [1.2.3] - unreleased\n\nNew.\n")
    with pytest.raises(SystemExit, match="no dated section"):
        notes("v1.2.3", project)


def test_the_changelog_knows_this_version() -> None:
    assert f"\n## [{__version__}] - " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
