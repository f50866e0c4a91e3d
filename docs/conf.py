"""How Sphinx makes the site of the pages that `docs/site` puts together; `make docs` calls it."""

from pathlib import Path

from judge.io.installed import __version__

project = "judge"
release = __version__
author = "the authors of judge"
project_copyright = "the authors of judge, MIT licence"

extensions = ["myst_parser"]
# The anchors that a reader of the plain files sees as well.
myst_heading_anchors = 5
myst_links_external_new_tab = False
# Quotation marks and hyphens of options stay as they are typed.
smartquotes = False
nitpicky = True

html_theme = "furo"
html_title = "judge"
html_static_path = [str(Path(__file__).parent / "theme")]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
# Search shows titles only: extracts would be fetched, which a page that is opened from disk may not do.
html_show_search_summary = False
# The same pages give the same bytes.
html_last_updated_fmt = None
_TEXT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", "DejaVu Sans", sans-serif'
_CODE = 'ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", "DejaVu Sans Mono", monospace'
_FONTS = {"font-stack": _TEXT, "font-stack--monospace": _CODE, "font-stack--headings": _TEXT}
# The colors of judge/io/pages/base.css.
html_theme_options = {
    "light_css_variables": _FONTS
    | {
        "color-brand-primary": "#0a5a96",
        "color-brand-content": "#0a5a96",
        "color-brand-visited": "#0a5a96",
        "color-foreground-primary": "#1b1f24",
        "color-foreground-secondary": "#555e68",
        "color-foreground-muted": "#555e68",
        "color-background-primary": "#ffffff",
        "color-background-secondary": "#f5f6f8",
        "color-background-border": "#d5dbe1",
        "color-code-background": "#f5f6f8",
    },
    "dark_css_variables": {
        "color-brand-primary": "#74bdf2",
        "color-brand-content": "#74bdf2",
        "color-brand-visited": "#74bdf2",
        "color-foreground-primary": "#e6e9ed",
        "color-foreground-secondary": "#a5afba",
        "color-foreground-muted": "#a5afba",
        "color-background-primary": "#14171b",
        "color-background-secondary": "#1d2127",
        "color-background-border": "#363d46",
        "color-code-background": "#1d2127",
    },
}
