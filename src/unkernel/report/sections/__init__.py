"""The parts of reports, one file each: a function of what models answered that makes a section."""
