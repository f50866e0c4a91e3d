"""Gold: grades by people, planned, labeled, imported, checked, split, sealed, and matched to a pool.

rows     reads gold files strictly and matches their rows to a pool
check    lists every problem of gold files
sources  reads grades as others publish them; draft turns them into gold rows
seal     separates the dev part from the test part, and guards the latter; its ledger records each look at gold
plan     draws the responses to label next, by sampling, which also deals them to assessors
sheets/  shows it to assessors, as tables, pages, and batches of platforms
grades   what labels in words mean
"""
