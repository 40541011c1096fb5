"""The README of the brokers leads to files that exist."""

import re
from pathlib import Path

README = Path(__file__).parents[3] / "examples" / "broker" / "README.md"


def test_each_link_leads_to_a_file() -> None:
    links = {link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", README.read_text())}
    assert links
    assert [link for link in links if not (README.parent / link).exists()] == []
