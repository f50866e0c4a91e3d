"""The site of the documents: the pages of `docs/`, the reference made from the program, and the checks of both.

`python -m docs.site` puts the pages together under `docs/_build/source`, has Sphinx make HTML of them, and checks every
link, anchor and picture of the result. `make docs` does it in the project's environment.
"""
