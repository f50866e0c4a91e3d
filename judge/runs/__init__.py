"""A submission: read from its format, checked against the field's rules, fixed, converted; topics and tokens."""
