"""Release: the bundle of a judged folder that a track may publish."""
