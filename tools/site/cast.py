"""Draws `wellkept demo` as an animated SVG for README: python tools/site/cast.py > docs/assets/demo.svg.

The SVG has no script and no font of its own, so that package indexes and GitHub show it. Each scene replaces the one
before; where animations are off, the first one stays.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from html import escape

SECONDS = 5  # that a scene stays
WIDTH, LINE, LEFT, TOP = 100, 19, 18, 52
COLOURS = {"title": "#7dcfff", "command": "#9ece6a", "output": "#c0caf5"}


def main() -> None:
    program = os.path.join(os.path.dirname(sys.executable), "wellkept")
    told = subprocess.run([program, "demo"], capture_output=True, text=True, check=True).stdout
    # The last step names the store, which is another one every time.
    scenes = [_lay_out(step) for step in told.split("\n\n")[:-1]]
    print(_draw(scenes))


def _lay_out(step: str) -> list[tuple[str, str]]:
    """Return the lines of a step with their styles."""
    title, *rest = step.strip().splitlines()
    lines = [(title, "title")]
    for line in rest:
        is_command = line.startswith("$ ")
        shown = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z\t|\t-(?=\t)", "", line).replace("\t", "  ")
        wrapped = textwrap.wrap(shown, WIDTH, subsequent_indent="    ") or [""]
        lines += [(part, "command" if is_command else "output") for part in wrapped]
    return lines


def _draw(scenes: list[list[tuple[str, str]]]) -> str:
    rows = max(len(scene) for scene in scenes)
    width, height = 2 * LEFT + int(WIDTH * 8.45), TOP + rows * LINE + 14
    share = 100 / len(scenes)
    drawn = []
    for number, scene in enumerate(scenes):
        texts = "".join(
            f'<text x="{LEFT}" y="{TOP + row * LINE}" class="{style}" xml:space="preserve">{escape(text)}</text>'
            for row, (text, style) in enumerate(scene)
        )
        drawn.append(f'<g class="scene" style="animation-delay:{number * SECONDS}s">{texts}</g>')
    styles = "".join(f".{name}{{fill:{colour}}}" for name, colour in COLOURS.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
        "<title>wellkept demo: remember, ask in other words, correct, forget</title>"
        "<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}"
        f".title{{font-weight:bold}}{styles}"
        f".scene{{opacity:0;animation:show {len(scenes) * SECONDS}s infinite}}"
        f"@keyframes show{{0%,{share - 1:g}%{{opacity:1}}{share:g}%,100%{{opacity:0}}}}"
        "@media (prefers-reduced-motion:reduce){.scene{animation:none}.scene:first-of-type{opacity:1}}</style>"
        f'<rect width="{width}" height="{height}" rx="8" fill="#1a1b26"/>'
        '<circle cx="20" cy="18" r="6" fill="#f7768e"/><circle cx="40" cy="18" r="6" fill="#e0af68"/>'
        '<circle cx="60" cy="18" r="6" fill="#9ece6a"/>' + "".join(drawn) + "</svg>"
    )


if __name__ == "__main__":
    main()
