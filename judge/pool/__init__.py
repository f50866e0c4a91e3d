"""Which responses are judged, on what evidence, under which id."""
