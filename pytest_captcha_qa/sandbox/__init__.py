"""A local stand-in for all the harness talks to: solving service, vendor, and a site with protected forms.

It serves loopback only and issues marked tokens only. It shares no wire code and no type table with the
packages it stands in for, so that a common mistake cannot hide.
"""
