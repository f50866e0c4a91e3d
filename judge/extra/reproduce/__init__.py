"""Reproduce: what papers printed, made again from their released files.

published   a module a publication: its numbers beside ours, and what they share
regin       CAsT-ReGIn checked and made again
job         `judge reproduce`; cast_regin: `judge crowd cast-regin`, with runs over its bank ids
"""
