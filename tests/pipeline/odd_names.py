"""Names of directories that shells, URLs, Java or Windows treat in some way of their own."""

from typing import Final

ODD_NAMES: Final = (
    *("run [1]", "{a,b}", "feature%2Flogin", "a%20b", "100%", "back\\slash", "2026-11-20T12:00", "é"),
    *("a+b&c#d", "a?b", "*", "~", "$HOME", "a'b\"c", "trailing "),
)
# deltalake decodes these, and does not find the tables.
REFUSED_NAMES: Final = ("feature%2Flogin", "a%20b", "back\\slash")
