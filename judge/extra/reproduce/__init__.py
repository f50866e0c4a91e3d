"""Reproduce: what papers printed, made again from their released files.

published   a module a publication: its numbers beside ours
regin       CAsT-ReGIn checked, made again, and matched with runs
job         `judge reproduce`; cast_regin: `judge crowd cast-regin`
"""
