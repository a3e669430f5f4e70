"""The dependencies of the product, and whether they are permitted; run in a developer's checkout.

packages         which packages an installation consists of, and their pinned versions
lock             writes service/requirements.txt: versions and hashes of all that the bento installs
licences         writes docs/licences.md, and refuses licences that are not permitted
bill             makes a CycloneDX bill of materials of an installation, and compares it with the lock
vulnerabilities  compares the lock with a file of advisories (OSV), without a network
"""
