"""MLflow's file store."""

import os


class Store:
    def start(self, config):
        os.environ |= {"MLFLOW_ALLOW_FILE_STORE": "true", "MLFLOW_DISABLE_TELEMETRY": "true"}
        import mlflow  # seconds, of which only the rank that logs pays

        self.mlflow = mlflow
        mlflow.set_tracking_uri("file:./mlruns")
        mlflow.set_experiment("chain")
        mlflow.start_run()
        mlflow.log_params(config)

    def write(self, step, values):
        self.mlflow.log_metrics(values, step=step)

    def close(self):
        self.mlflow.end_run()
