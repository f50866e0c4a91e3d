"""CAsT-ReGIn as published: its resource read, checked, made again byte for byte, and runs matched with it."""
