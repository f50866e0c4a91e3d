"""What a calibration found, as files, a report, pictures and a summary; formats, computes nothing."""
