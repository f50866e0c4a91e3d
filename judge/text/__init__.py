"""How ids, texts, numbers and tables are written: order of ids, strangers' texts made safe, sentences, words. Pure."""
