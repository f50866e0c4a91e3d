"""Draw: pictures as SVG and PNG, the same bytes for the same numbers; the look of pages.

drawable          whether matplotlib is installed
canvas            colors, text beside the axes, bytes without dates
intervals         a row for each name: a value with its interval
curves            lines over a number such as the depth of a turn
slopes            a line for each name from its place in one ranking to its place in another
page              templates that escape, one style sheet, a policy that lets nothing in
"""
