"""How files are read and written: whole and atomically, line by line, as tables, as TREC formats."""
