"""Adds the pages that follow from code, scenarios and the files at the top, and turns links between them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from docs.pages.algorithm_pages import algorithm_pages  # noqa: E402
from docs.pages.lesson_pages import lesson_pages  # noqa: E402

_FROM_TOP = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
"""Files at the top of the repository, and the pages that they become."""


def on_config(config: Any) -> Any:
    """Fill the two sections of the navigation that have a page for each algorithm and each lesson."""
    for section in config.nav:
        (title, pages), *_ = section.items()
        if title == "Algorithms":
            pages += [{name: path} for name, path, _ in algorithm_pages()]
        elif title == "Lessons":
            pages += lesson_pages().navigation
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add what is not in docs/: pages, pictures, plots."""
    found = {path: text for _, path, text in algorithm_pages()} | lesson_pages().texts
    found |= {page: (ROOT / name).read_text(encoding="utf-8") for name, page in _FROM_TOP.items()}
    for path, text in found.items():
        files.append(File.generated(config, path, content=text))
    for picture in (*(ROOT / "screenshots").glob("*.png"), *(ROOT / "screenshots").glob("*.gif")):
        files.append(File.generated(config, f"screenshots/{picture.name}", abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links as they are on the site, where docs/ is the top; the pages link to each other as files do."""
    if page.file.src_uri in _FROM_TOP.values():
        markdown = markdown.replace("](docs/", "](")
        markdown = re.sub(r"\]\(LICENSE\)", "](https://www.apache.org/licenses/LICENSE-2.0)", markdown)
        for name, path in _FROM_TOP.items():
            markdown = markdown.replace(f"]({name})", f"]({path})")
    return markdown.replace("](../screenshots/", "](screenshots/")
