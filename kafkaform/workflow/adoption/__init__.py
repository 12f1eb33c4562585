"""In: folders that exist already, and the objects of live clusters. Out: the text of kafkaform.hcl
for these folders, and the objects for each folder whose boundary they fit.
Must not know: how files are written or shown.
"""
