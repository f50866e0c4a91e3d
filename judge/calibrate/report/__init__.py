"""The findings of a calibration as files, a report, pictures and a summary; nothing is computed here."""
