"""CAsT-ReGIn: its problems, its files made again, runs matched with its banks."""
