"""Hooks of the documentation site: pages from outside docs/, links to the repository, and llms.txt."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
# Files beside docs/ that are pages of the site.
PAGES = {"SECURITY.md": "security.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
# They mention everything, and would stand above the page about it in the results of a search.
LONG_PAGES = {"changelog.md", "cli.md", "decisions.md", "reference/python.md", "reference/records.md", "rest.md"}
LINK = re.compile(r"(?<=\]\()(?P<target>[^)\s#:]+)(?P<anchor>#[^)\s]*)?(?=\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files beside docs/ that are pages."""
    for source, target in PAGES.items():
        files.append(File.generated(config, target, content=(ROOT / source).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links that leave docs/ to the page made of the file, or to the repository."""
    if page.file.src_uri in LONG_PAGES:
        page.meta.setdefault("search", {"boost": 0.3})
    origin = {target: source for source, target in PAGES.items()}.get(page.file.src_uri)
    folder = ROOT if origin else (ROOT / "docs" / page.file.src_uri).parent
    depth = "../" * page.file.src_uri.count("/")

    def replace(match: re.Match[str]) -> str:
        target, anchor = match["target"], match["anchor"] or ""
        path = (folder / target).resolve()
        if not path.is_relative_to(ROOT) or not path.exists():
            return match[0]
        name = path.relative_to(ROOT).as_posix()
        if name in PAGES:
            return depth + PAGES[name] + anchor
        if name.startswith("docs/") and path.suffix:
            return depth + name.removeprefix("docs/") + anchor
        kind = "tree" if path.is_dir() else "blob"
        return f"{config.repo_url}/{kind}/main/{name}{anchor}"

    # Code may look like a link: `tests[0](x)`.
    parts = re.split(r"(^```.*?^```$|`[^`\n]+`)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if number % 2 else LINK.sub(replace, part) for number, part in enumerate(parts))


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    """Keep the navigation for llms.txt."""
    config.extra["navigation"] = nav
    return nav


def on_post_build(config: MkDocsConfig) -> None:
    """Write llms.txt: every page with its title, by section."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}"]
    for section in config.extra["navigation"].items:
        lines += ["", f"## {section.title}", "", *_list_pages(section, config.site_url or "")]
    (Path(config.site_dir) / "llms.txt").write_text("\n".join(lines) + "\n", "utf-8")


def _list_pages(section: Any, address: str) -> list[str]:
    if isinstance(section, Page):
        return [f"- [{section.title}]({address}{section.url}): {_summarise(section.markdown or '')}"]
    return [line for child in section.children for line in _list_pages(child, address)]


def _summarise(markdown: str) -> str:
    """Return the first sentence of the first paragraph of prose."""
    prose = re.sub(r"^```.*?^```$", "", markdown, flags=re.MULTILINE | re.DOTALL)
    paragraphs = (part for part in re.split(r"\n\s*\n", prose) if re.match(r"[A-Za-z`*\[]", part.strip()))
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(next(paragraphs, "").split()))
    return re.split(r"(?<=[.:])\s", text)[0].rstrip(":")
