#!/bin/sh
# A build on YARN; the driver runs here, where HADOOP_CONF_DIR or YARN_CONF_DIR is set. First the jars
# and a Python for all machines. It links to the system's, so each needs the same version of that:
#   mvn dependency:copy-dependencies -DoutputDirectory=jars
#   python3.11 -m venv fleet && fleet/bin/pip install 'kafkaform[fleet]' venv-pack
#   fleet/bin/venv-pack --prefix fleet --output fleet.tar.gz
set -eu

fleet/bin/spark-submit \
  --master yarn \
  --deploy-mode client \
  --jars "$(echo jars/*.jar | tr ' ' ',')" \
  --archives fleet.tar.gz#fleet \
  --conf spark.pyspark.driver.python=fleet/bin/python \
  --conf spark.pyspark.python=./fleet/bin/python \
  --num-executors 4 \
  --executor-cores 2 \
  --executor-memory 8g \
  fleet_job.py run --root s3://bucket/fleet
