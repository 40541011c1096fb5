"""Configuration of the documentation site. `make docs` builds it."""

from __future__ import annotations

import re
import tomllib
import zlib
from html import escape
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from docutils import nodes

import purgatory

if TYPE_CHECKING:
    from docutils.nodes import Element, TextElement
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

ROOT = Path(__file__).parents[1]

project = "Purgatory"
author = "the Purgatory contributors"
project_copyright = author
version = release = purgatory.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
]

# Pages

exclude_patterns = ["benchmarks/runs"]
myst_enable_extensions = ["colon_fence", "deflist"]
# A link may name a heading of another page, `page.md#heading`; the strict build fails when there is none.
myst_heading_anchors = 3
# The pages of docs/benchmarks are generated, and nest headings as their tables need it.
suppress_warnings = ["myst.header"]

html_theme = "furo"
pygments_dark_style = "a11y-dark"
html_title = f"Purgatory {release}"
html_favicon = "../purgatory/web/dashboard/static/icon.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
templates_path = ["_templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
        "site.html",
    ]
}
html_theme_options: dict[str, Any] = {"top_of_page_buttons": []}
# Where the sources are: each page gets a link to edit it, and the sidebar one to the repository.
repository = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"].get("urls", {}).get("Repository")
if repository:
    html_context = {"repository": repository}
    html_theme_options = {
        "source_repository": repository,
        "source_branch": "main",
        "source_directory": "docs/",
        "top_of_page_buttons": ["edit"],
    }
html_show_sphinx = False
copybutton_prompt_text = r"\$ "
copybutton_prompt_is_regexp = True

# Reference

# The package's docstrings put names into single backticks: a link where the name is known, code elsewhere.
default_role = "py:obj"
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"
python_display_short_literal_types = True

nitpicky = True
nitpick_ignore_regex = [
    # Single backticks also mark code of any other kind: parameters, commands, values.
    ("py:obj", r".*"),
    # Type variables in signatures.
    ("py:.*", r"(.*\.)?(D|M|Op|R|T|Ts)"),
    # Protocols of a single parameter, which its function describes.
    ("py:class", r"purgatory\.(metrics|_figures\.\w+)\.\w+|purgatory\.web\.\w+\.\w+"),
    # What the tests put in the place of the disk.
    ("py:class", r"purgatory\.delayed\.storage\.disk\.Disk"),
    # Other projects' names are links where their inventories can be fetched, and plain text offline.
    (
        "py:.*",
        r"(anyio|asyncio|asyncpg|collections|datetime|opentelemetry|os|prometheus_client|redis|starlette)\..*",
    ),
    ("py:.*", r"Connection|Context|TaskStatus"),
]

# Links into other projects' documentation. When an inventory cannot be fetched, Sphinx takes the next
# location, an empty inventory: so the strict build passes offline, without these links.
EMPTY_INVENTORY = ROOT / "build" / "empty.inv"
EMPTY_INVENTORY.parent.mkdir(exist_ok=True)
EMPTY_INVENTORY.write_bytes(
    b"# Sphinx inventory version 2\n# Project: none\n# Version: 0\n"
    b"# The remainder of this file is compressed using zlib.\n" + zlib.compress(b"")
)
intersphinx_timeout = 3
intersphinx_mapping = {
    "python": ("https://docs.python.org/3", (None, str(EMPTY_INVENTORY))),
    "anyio": ("https://anyio.readthedocs.io/en/stable", (None, str(EMPTY_INVENTORY))),
}


def link_to_public_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: TextElement
) -> Element | None:
    """Find a public name that a docstring shortens, or a class that a signature names by its module."""
    if node.get("refdomain") != "py":
        return None
    python = env.domains.python_domain
    name = f"purgatory.{node['reftarget']}"
    if name not in python.objects:
        last = node["reftarget"].rpartition(".")[2]
        matches = [
            full
            for full, entry in python.objects.items()
            if full.rpartition(".")[2] == last and entry.objtype in ("class", "exception")
        ]
        if len(matches) != 1:
            return None
        [name] = matches
    return python.resolve_xref(env, node["refdoc"], app.builder, "obj", name, node, content)


# installation.md says between these what works before there is a release. The first release removes it there.
UNTIL_THE_RELEASE = ("<!-- until the release -->", "<!-- end -->")


def say_what_installs_today(app: Sphinx, page: str, source: list[str]) -> None:
    """Below its first command that installs the library, a page says what has to come before that command."""
    start, end = UNTIL_THE_RELEASE
    if page == "installation" or start not in (ROOT / "docs" / "installation.md").read_text():
        return
    note = f"\n\n```{{include}} /installation.md\n:start-after: {start}\n:end-before: {end}\n```"
    command = r"pip install[^\n]* '?asyncio-purgatory.*?(?=\n\n)"
    source[0] = re.sub(command, rf"\g<0>{note}", source[0], count=1, flags=re.DOTALL)


def describe(
    app: Sphinx, page: str, template: str, context: dict[str, Any], tree: nodes.document | None
) -> None:
    """Give the page's first paragraph to search engines."""
    for paragraph in tree.findall(nodes.paragraph) if tree else ():
        if isinstance(paragraph.parent, nodes.section):
            text = escape(shorten(paragraph.astext(), 160, placeholder=" …"))
            context["metatags"] += f'<meta name="description" content="{text}">'
            return


# What the theme and Sphinx write, and what a keyboard and a screen reader need: levels of headings, code that
# the keyboard scrolls, names that tell two landmarks apart, and no heading without a text.
AMENDED = {
    'class="caption" role="heading">': 'class="caption" role="heading" aria-level="2">',
    "<pre>": '<pre tabindex="0">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="The site">',
    '<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="This page">',
    '<th class="head"><p></p></th>': "<td></td>",
}


def make_accessible(app: Sphinx, error: Exception | None) -> None:
    for page in Path(app.outdir).rglob("*.html"):
        text = amended = page.read_text()
        for written, needed in AMENDED.items():
            amended = amended.replace(written, needed)
        if amended != text:
            page.write_text(amended)


def setup(app: Sphinx) -> None:
    """Refuse the compiled core, whose signatures have no annotations."""
    if purgatory.COMPILED:
        raise RuntimeError("the reference needs the interpreted core: set PYTHONPATH to the checkout")
    app.connect("source-read", say_what_installs_today)
    app.connect("missing-reference", link_to_public_name)
    app.connect("html-page-context", describe)
    app.connect("build-finished", make_accessible)
