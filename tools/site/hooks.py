"""Hooks of the documentation site: pages and files from outside docs/, and llms.txt."""

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
LONG_PAGES = {
    "changelog.md",
    "reference/cli.md",
    "reference/python.md",
    "reference/records.md",
    "reference/rest.md",
    "reference/settings.md",
}
# Code may look like a link: `tests[0](x)`; the text of a link may be code.
CODE_OR_LINK = re.compile(
    r"^```.*?^```$|`[^`\n]+`|\[(?P<text>[^\[\]]*)\]\((?P<target>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)",
    re.MULTILINE | re.DOTALL,
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files beside docs/ that are pages."""
    for source, target in PAGES.items():
        files.append(File.generated(config, target, content=(ROOT / source).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links that leave docs/ to the page made of the file; of other files of the repository, name the path."""
    if page.file.src_uri in LONG_PAGES:
        page.meta.setdefault("search", {"boost": 0.3})
    origin = {target: source for source, target in PAGES.items()}.get(page.file.src_uri)
    folder = ROOT if origin else (ROOT / "docs" / page.file.src_uri).parent
    depth = "../" * page.file.src_uri.count("/")

    def replace(match: re.Match[str]) -> str:
        text, target, anchor = match["text"], match["target"], match["anchor"] or ""
        path = (folder / (target or "")).resolve()
        if not target or not path.is_relative_to(ROOT) or not path.exists():
            return match[0]
        name = path.relative_to(ROOT).as_posix()
        if name in PAGES:
            return f"[{text}]({depth}{PAGES[name]}{anchor})"
        if name.startswith("docs/") and path.suffix:
            return f"[{text}]({depth}{name.removeprefix('docs/')}{anchor})"
        return text if name in text else f"{text} (`{name}`)"

    return CODE_OR_LINK.sub(replace, markdown)


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
        return [f"- [{section.title}]({address + section.url or './'}): {_summarise(section.markdown or '')}"]
    return [line for child in section.children for line in _list_pages(child, address)]


def _summarise(markdown: str) -> str:
    """Return the first sentence of the first paragraph of prose."""
    prose = re.sub(r"^```.*?^```$", "", markdown, flags=re.MULTILINE | re.DOTALL)
    paragraphs = (part for part in re.split(r"\n\s*\n", prose) if re.match(r"[A-Za-z`*\[]", part.strip()))
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(next(paragraphs, "").split()))
    return re.split(r"(?<=[.:])\s", text)[0].rstrip(":")
