"""The wording of responses beside that of manual ones: texts, overlap, tables."""
