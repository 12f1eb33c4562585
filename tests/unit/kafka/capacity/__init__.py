"""How full disks become."""
