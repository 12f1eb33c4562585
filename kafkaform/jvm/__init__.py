"""In: a Java and its jars. Out: a file of classes from which later processes start.

Must not know: Kafka, Spark, who starts Java and why.
"""

from .archive import FOLDER, Archive, make_archive

__all__ = ["FOLDER", "Archive", "make_archive"]
